package app

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/verification"
)

func (a *app) verifyCommand() *cobra.Command {
	o := verification.Options{Timeout: defaultTimeout}
	c := a.onStore("verify [--worker-type TYPE]", "Check that whole ledgers keep the protocol's rules", func(c *cobra.Command, t storeuri.Target) error {
		out := verification.Output{Writer: a.shown}
		if isTerminal(a.stderr) {
			// It has the names of valid worker types, and numbers.
			out.Progress = func(text string) { _, _ = fmt.Fprintf(a.stderr, "\r%s\x1b[K", text) }
			defer out.Progress("")
		}
		return verification.Run(c.Context(), t, o, out)
	})
	a.typeFlag(c.Flags(), &o.WorkerType, "all")
	a.jsonFlag(c.Flags(), &o.JSON, "text", "what was found")
	c.Flags().BoolVar(&o.Strict, "strict", false, "fail if there are warnings, too")
	a.timeoutFlag(c.Flags(), &o.Timeout, "how long to wait for each answer of the store", time.Hour)
	return c
}
