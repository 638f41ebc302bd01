package app

import (
	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/override"
)

const releaseHelp = `Ask the holder to give up the rest of its lease, by a record that says who did it and why.

The holder's code is told to stop when the holder reads the order, and the rest is released
once it has returned: one holder works at a time, as ever. The order is about the lease in
force alone. Others go first in what is left of the slot. A holder with FailoverWithin reads
it when it extends its lease; another one shortly before its next slot, when little is left,
or not at all in slots of more than an hour, because the order ends after an hour.
A lease of a group isn't released, because others of it may work.

A holder that is dead reads nothing. --force ends its lease by an override instead, whatever
the holder does: if it lives, two may work until it notices, or until its window ends. What
that risks is shown first, and asked, unless --yes is given; see leasectl override.

Workers too old to know orders don't obey them: upgrade those first.

` + leverJSON + `

With --force nothing of that is printed, but what leasectl override prints.`

func (a *app) releaseCommand() *cobra.Command {
	o, force := lever.Options{}, false
	c := &cobra.Command{
		Use:   "release --worker-type TYPE",
		Short: "Ask the holder to give up its lease",
		Long:  releaseHelp,
		Example: `  leasectl release --worker-type invoice-export --reason "it is stuck"
  leasectl release --worker-type invoice-export --force --yes --reason "its host is gone"`,
	}
	a.lever(c, &o, leverParts{}, func(c *cobra.Command) error {
		t := a.awaited(c)
		if o.Yes && !force {
			a.bad("--yes: goes with --force only: nothing else is asked")
		}
		if claim, ok := given(c.Flags(), "claim"); ok && force {
			a.bad("--claim %q: goes without --force, which ends whatever is in force", claim)
		}
		if text, ok := given(c.Flags(), "output"); ok && text == "json" && force {
			a.bad("--output json: goes without --force")
		}
		if err := a.usage(c); err != nil {
			return err
		}
		if force {
			return lever.Force(c.Context(), t, o, override.Screen{Plan: a.told(), Result: a.shown})
		}
		return lever.Release(c.Context(), t, o, a.shown)
	})
	option(a, c.Flags(), &o.Target, "claim", "ID", "the claim of the lease, as inspect slots --output json shows it (default: the one in force)", nonEmpty)
	c.Flags().BoolVar(&force, "force", false, "end the lease by an override, whether its holder stops or not")
	c.Flags().BoolVar(&o.Yes, "yes", false, "with --force: show what it risks, but don't ask")
	return c
}
