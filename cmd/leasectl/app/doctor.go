package app

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/doctor"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

func (a *app) doctorCommand() *cobra.Command {
	o, asJSON := doctor.Options{Timeout: defaultTimeout, Scrub: a.scrub}, false
	c := a.onStore("doctor [--worker-type TYPE]", "Find out whether it is set up right", func(c *cobra.Command, t storeuri.Target) error {
		report, err := doctor.Examine(c.Context(), t, o)
		switch {
		case err != nil:
			return err
		case asJSON:
			if err := report.WriteJSON(a.shown); err != nil {
				return err
			}
		default:
			a.printf("%s", report.Text(a.colour()))
		}
		return report.Err()
	})
	a.typeFlag(c.Flags(), &o.WorkerType, "all")
	a.jsonFlag(c.Flags(), &asJSON, "table", "them")
	option(a, c.Flags(), &o.Timeout, "timeout", "DURATION", "how long all checks may take (default 10s)", duration(100*time.Millisecond, time.Hour))
	return c
}
