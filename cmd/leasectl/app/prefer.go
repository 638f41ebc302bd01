package app

import (
	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
)

const preferHelp = `Let one worker go first for a while, by a record that says who did it and why.

The preferred worker has priority 0, and is first among equals; all others come one
priority later. Each worker reads the order at its turn for the next slot, and lets the
preferred one go first from then on: if that lives, it holds the lease from the next
boundary on. If it is dead, another worker has the slot by its boundary: nothing is lost.
A lease that goes on from slot to slot doesn't go on before the preferred worker has had
its turn.

With --now, a holder with FailoverWithin that isn't the preferred worker steps down when it
extends its lease, once, and its rest is claimed in the new order.

Workers too old to know orders don't obey them: upgrade those first.

` + leverJSON

func (a *app) preferCommand() *cobra.Command {
	o := lever.Options{}
	c := &cobra.Command{
		Use:     "prefer --worker-type TYPE --instance-id LABEL (--for DURATION | --until TIME)",
		Short:   "Let one worker go first for a while",
		Long:    preferHelp,
		Example: `  leasectl prefer --worker-type invoice-export --instance-id new-1 --for 24h --reason "its host is faster"`,
	}
	p := leverParts{
		lasts: true, now: true, asks: "a holder that isn't preferred steps down when it extends its lease",
		required: "instance-id", requiredUsage: "name the worker that goes first, as leasectl inspect workers shows it",
	}
	a.lever(c, &o, p, func(c *cobra.Command) error {
		t := a.awaited(c)
		if err := a.usage(c); err != nil {
			return err
		}
		return lever.Prefer(c.Context(), t, o, a.shown)
	})
	option(a, c.Flags(), &o.Target, "instance-id", "LABEL", "the worker that goes first (required)", nonEmpty)
	return c
}
