package app

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/demo"
)

const demoHelp = `Show leasing at work, with nothing to set up: three workers, real processes
with priorities 0, 1 and 2, on a temporary SQLite ledger. In each slot one of
them works. The leader is killed with SIGKILL halfway through a slot. Later it
comes back, and gets the lease again at a boundary.

The work is a process that writes a line when it begins, every 100 ms, and when
it ends. Each line has the time of the machine's boot clock, and the token. From
these lines, not from the ledger, the demo computes whether two workers ever
worked at once, and how long nobody worked at a boundary. At the end it checks the
ledger, too.

With 9 slots of 3 s, the defaults, it takes about half a minute. It exits with
code 8 if it finds a problem.`

func (a *app) demoCommand() *cobra.Command {
	o := demo.Options{Slots: 9, Interval: 3 * time.Second}
	c := &cobra.Command{
		Use:     "demo",
		Short:   "Show leasing at work: three workers, a crash and a return",
		Long:    demoHelp,
		Example: "  leasectl demo\n  leasectl demo --slots 20 --interval 1s",
		Args:    noArgs,
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
