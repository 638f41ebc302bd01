package app

import (
	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
	"github.com/slotlease/slotlease/store"
)

const pauseHelp = `Let no worker of a type claim a slot for a while, by a record that says who did it and why.

Once the command has succeeded, no claim lands until the pause is over: claims and orders
are appended to one ledger, each right after the record that it was decided by. A slot that
has been won goes on to its end. Workers look once at each slot meanwhile, and report it as
missed, because of the pause. It ends by itself; leasectl resume ends it sooner. It works
before the first worker has started, too.

With --now the holder's code is told to stop when the holder reads the order, and the rest
is released once it has returned. A holder with FailoverWithin reads it when it extends its
lease; another one shortly before its next slot. It is asked first, unless --yes is given.

Workers too old to know orders don't obey them: upgrade those first.

` + leverJSON

func (a *app) pauseCommand() *cobra.Command {
	o := lever.Options{}
	c := &cobra.Command{
		Use:   "pause --worker-type TYPE (--for DURATION | --until TIME)",
		Short: "Let no worker claim for a while",
		Long:  pauseHelp,
		Example: `  leasectl pause --worker-type invoice-export --for 2h --reason "the database moves"
  leasectl pause --worker-type invoice-export --until 2026-03-02T12:00:00Z --now --yes`,
	}
	a.lever(c, &o, leverParts{lasts: true, now: true, asks: "the holder stops when it reads the order"}, func(c *cobra.Command) error {
		t := a.awaited(c)
		if err := a.usage(c); err != nil {
			return err
		}
		return lever.Pause(c.Context(), t, o, a.shown)
	})
	c.Flags().BoolVar(&o.Yes, "yes", false, "don't ask")
	return c
}

const resumeHelp = `End a pause before its time, or another order.

Workers claim when they look next: at their turn for the next slot.

` + leverJSON

func (a *app) resumeCommand() *cobra.Command {
	o, kind := lever.Options{}, string(store.OrderPause)
	c := &cobra.Command{
		Use:   "resume --worker-type TYPE",
		Short: "End a pause, or another order, before its time",
		Long:  resumeHelp,
		Example: `  leasectl resume --worker-type invoice-export
  leasectl resume --worker-type invoice-export --kind prefer`,
	}
	a.lever(c, &o, leverParts{}, func(c *cobra.Command) error {
		t := a.awaited(c)
		if err := a.usage(c); err != nil {
			return err
		}
		o.Kind = store.OrderKind(kind)
		return lever.Resume(c.Context(), t, o, a.shown)
	})
	const kinds = "pause|prefer|release|drain"
	option(a, c.Flags(), &kind, "kind", kinds, "the order that is to end (default pause)", oneOf("pause", "prefer", "release", "drain"))
	option(a, c.Flags(), &o.Target, "host", "NAME", "with --kind drain: of which host (default: all)", nonEmpty)
	return c
}
