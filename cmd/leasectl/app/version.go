package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
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
	asJSON, check, o := false, false, inspect.Options{Timeout: defaultTimeout}
	c := &cobra.Command{
		Use:   "version [--check]",
		Short: "Show version, Go release and platform, and whether workers run the same",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !check {
				a.goesOnlyWith(c.Flags(), "check", "timeout")
				if err := errors.Join(storeUnused(c), a.usage(c)); err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(a.shown).Encode(version())
				}
				a.printf("%s\n", versionText())
				return nil
			}
			t := a.awaited(c)
			if err := a.usage(c); err != nil {
				return err
			}
			o.JSON = asJSON
			return inspect.Versions(c.Context(), t, o, version().Version, a.screen())
		},
	}
	c.Flags().BoolVar(&check, "check", false, "show which versions the workers of the store run; exit code 11 if any is another one")
	a.jsonFlag(c.Flags(), &asJSON, "text", "it")
	a.timeoutFlag(c.Flags(), &o.Timeout, waitForStore, time.Hour)
	return needsStore(c)
}
