package app

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/upkeep"
)

const backupHelp = `Copy a SQLite ledger into one file, while workers use it. They don't wait.

The copy is a whole ledger, as of some moment during the copying: leasectl inspect reads it.
It is written beside the file that --to names, and gets its name when it is whole and on the
disk. Nothing is overwritten. It needs no right to write to the ledger.

Don't copy the file by other means: what was stored last is in the file beside it, -wal.

Restoring a copy takes back what was stored since: leases that were granted, and what was
done. So stop all workers and wait until the longest slot is over. Then remove the ledger
with its -wal and -shm, move the copy to its place, and start the workers. Slots that were
done since the copy run again, and fencing tokens may be given again: a resource that checks
tokens may refuse the workers for a while.`

func (a *app) backupCommand() *cobra.Command {
	timeout, to := time.Minute, ""
	c := &cobra.Command{
		Use:     "backup --to FILE",
		Short:   "Copy a SQLite ledger, while workers use it",
		Long:    backupHelp,
		Example: `  leasectl backup --store sqlite:leases.db --to leases-2026-03-02.db`,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.target(c)
			if !c.Flags().Changed("to") {
				a.bad("--to is missing: name the file for the copy, which must not exist")
			}
			if err := a.usage(c); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			return upkeep.Backup(ctx, t, to, a.shown)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	option(a, flags, &to, "to", "FILE", "the file for the copy, which must not exist (required)", nonEmpty)
	option(a, flags, &timeout, "timeout", "DURATION", "how long it may take (default 1m)", duration(time.Millisecond, 24*time.Hour))
	return c
}

const reanchorHelp = `Take the store time of a SQLite ledger from the machine's clock anew.

Store time is taken from that clock once, when the ledger is first used after boot. If the
clock was wrong then, store time stays wrong until the next boot, and workers warn of it. This
happens on machines without a battery-backed clock, before they have the time from the network.
Correct the clock, stop all workers of the machine, and run this command.

It shows what changes, and asks. It refuses, and changes nothing (exit code 1), while a
worker uses the ledger, or a term may be in force by store time or by the machine's clock. A
worker that starts meanwhile waits until it is done.

If the clock and store time agree, there is nothing to do, and nothing is changed. If store
time is set back, tokens may be lower than those before, and nothing is claimed until the
newest record of a worker type is over or, if it lies more than 10 minutes ahead, until workers
have superseded it, in some minutes up to a day. All of these are shown.

Other stores have clocks of their own; on systems other than Linux, store time is the
machine's clock.`

func (a *app) reanchorCommand() *cobra.Command {
	o := upkeep.Options{Timeout: defaultTimeout}
	c := &cobra.Command{
		Use:     "reanchor",
		Short:   "Take the time of a SQLite ledger from the machine's clock anew",
		Long:    reanchorHelp,
		Example: `  leasectl reanchor --store sqlite:leases.db`,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.target(c)
			if err := a.usage(c); err != nil {
				return err
			}
			if !o.Yes && !isTerminal(a.stdin) {
				o.Ask = nil
			}
			return upkeep.Reanchor(c.Context(), t, o, a.told(), a.shown)
		},
	}
	o.Ask = func(question string) (string, error) { return a.ask(c.Context(), question) }
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&o.Yes, "yes", false, "show what changes, but don't ask")
	option(a, flags, &o.Timeout, "timeout", "DURATION", "how long to wait for the store, before the question and after it (default 10s)", duration(time.Millisecond, time.Hour))
	return c
}
