package app

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/page"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/workerlease"
)

func (a *app) reportCommand() *cobra.Command {
	file, timeout := "", defaultTimeout
	c := a.onStore("report --html FILE", "Write the page of serve into a file, with what is known now", func(c *cobra.Command, t storeuri.Target) error {
		p := page.New(page.Options{Target: t, Timeout: timeout, Version: workerlease.Version(), Scrub: a.scrub})
		defer p.Close()
		var b bytes.Buffer
		if err := p.Report(c.Context(), &b); err != nil {
			return err
		}
		// The end of what commands wrote may be in it.
		if err := writePrivate(file, b.Bytes()); err != nil {
			return exit.With(exit.Failure, fmt.Errorf("--html %q: %w", file, err))
		}
		a.printf("wrote %s, of %d KiB\n", file, (b.Len()+1023)>>10)
		return nil
	})
	option(a, c.Flags(), &file, "html", "FILE", "the file, which only its owner may read; one that is there is overwritten (required)", nonEmpty)
	require(c.Flags(), "html", "name the file to write, such as report.html")
	a.timeoutFlag(c.Flags(), &timeout, "how long each look waits for the store", time.Hour)
	return c
}

// writePrivate writes a file that only its owner may read, even if it was there, and others could.
func writePrivate(file string, content []byte) error {
	if is, err := os.Stat(file); err == nil && is.Mode().IsRegular() {
		if err := os.Chmod(file, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(file, content, 0o600)
}
