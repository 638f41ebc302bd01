package app

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/workerlease"
)

// versionInfo is the output of version as JSON.
type versionInfo struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func version() versionInfo {
	return versionInfo{workerlease.Version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
}

// versionText is the output of version and --version.
func versionText() string {
	v := version()
	return fmt.Sprintf("leasectl %s, %s, %s", v.Version, v.Go, v.Platform)
}

func (a *app) versionCommand() *cobra.Command {
	output := "text"
	c := &cobra.Command{
		Use:   "version",
		Short: "Show version, Go release and platform",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.usage(c); err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(a.shown).Encode(version())
			}
			a.printf("%s\n", versionText())
			return nil
		},
	}
	option(a, c.Flags(), &output, "output", "text|json", "how to show it (default text)", oneOf("text", "json"))
	return c
}
