package app

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	o := demo.Options{Slots: 9, Interval: 3 * time.Second}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show leasing at work: three workers, a crash and a return",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.usage(c); err != nil {
				return err
			}
			return demo.Run(c.Context(), o, demo.Host{Out: a.picture(), Colours: a.colour(), Env: a.env, Urgent: a.signals.Urgent})
		},
	}
	option(a, c.Flags(), &o.Slots, "slots", "N", "how many slots to show (default 9)", number(6, 1000))
	option(a, c.Flags(), &o.Interval, "interval", "DURATION", "length of the slots (default 3s)", duration(time.Second, time.Hour))
	c.Flags().BoolVar(&o.Keep, "keep", false, "keep the ledger and the logs")
	return c
}

// demoWorkCommand is the work of the demo.
func (a *app) demoWorkCommand() *cobra.Command {
	return &cobra.Command{
		Use:    demo.WorkCommand + " FILE",
		Short:  "The work of the demo",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(c *cobra.Command, args []string) error { return demo.Work(c.Context().Done(), args[0], a.getenv) },
	}
}
