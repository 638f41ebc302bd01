package app

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
)

const drainHelp = `Let the workers of a host claim nothing for a while, by records that say who did it and why.

One record is written for each worker type that the roster has workers of on the host, or
for the one of --worker-type. A holder there goes on to the end of its slot and, if its lease
would go on into the next one, stops there. Workers on other hosts have the slots. The orders
end by themselves; leasectl resume --kind drain ends them sooner.

With --now a holder there is told to stop when it reads the order, and the rest is released
once its code has returned. It is asked first, unless --yes is given.

Workers too old to know orders don't obey them: upgrade those first.

With --output json it prints one object with a list, orders: each as leasectl pause prints it.`

func (a *app) drainCommand() *cobra.Command {
	o := lever.Options{}
	c := &cobra.Command{
		Use:   "drain [--host NAME] (--for DURATION | --until TIME)",
		Short: "Let the workers of a host claim nothing for a while",
		Long:  drainHelp,
		Example: `  leasectl drain --for 30m --reason "the host is upgraded"
  leasectl drain --host db-7 --worker-type invoice-export --for 1h --now --yes`,
	}
	a.lever(c, &o, leverParts{lasts: true, now: true, worksWithout: true, asks: "holders there stop when they read the order"}, func(c *cobra.Command) error {
		t := a.awaited(c)
		if o.Target == "" {
			name, err := os.Hostname()
			if err != nil {
				a.bad("--host is missing, and this host has no name: %w", err)
			}
			o.Target = name
		}
		if err := a.usage(c); err != nil {
			return err
		}
		return lever.Drain(c.Context(), t, o, a.shown)
	})
	option(a, c.Flags(), &o.Target, "host", "NAME", "the host, as leasectl inspect workers shows it (default: this one)", nonEmpty)
	c.Flags().BoolVar(&o.Yes, "yes", false, "don't ask")
	return c
}
