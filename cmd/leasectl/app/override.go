package app

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/override"
	"github.com/slotlease/slotlease/store"
)

const overrideHelp = `End whatever is in force for a worker type, by a record that says who did it and why.

It is for records that leave nothing to claim for long, which workers obey: a window
that lasts for a year, slots that are said to be done up to then, or poison above which
no record can be obeyed, which workers never supersede. "leasectl inspect slots" and
the log of workers name the command with its options.

It shows what is in force, and what ending that risks, and asks before it writes. A
holder that lives doesn't notice at once: it works on until it extends its lease, or until
shortly before its next slot, and at the latest until its window ends. Until then two may
work. What checks fencing tokens is safe from a holder whose token is lower than those of
the leases that follow; it is shown if one isn't. Stop the holder first if you can.

From then on slots are free, also what is left of the slot that was overridden. Workers
claim them when they look next, at the latest for their next slot.

The record is the one after --seq. If another record has come meanwhile, nothing is
written, and the exit code is 1. If it isn't known whether it was written, the exit code
is 3; look before you repeat it. If the number after --seq was the free one below other
records, workers go by those then, which is shown before and after.

What is done stays done, unless it is what leaves nothing to claim: then slots are done
up to the latest time that older records say. --done-until says another. Slots before it
aren't run; later ones are, even if they were.

What is asked is written to the standard error, and what came of it to the output.`

func (a *app) overrideCommand() *cobra.Command {
	o := override.Options{Timeout: defaultTimeout}
	c := &cobra.Command{
		Use:   "override --worker-type TYPE --seq N",
		Short: "End what leaves nothing to claim for long",
		Long:  overrideHelp,
		Example: `  leasectl override --worker-type invoice-export --seq 1042
  leasectl override --worker-type invoice-export --seq 1042 --reason "its host is gone" --yes`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.awaited(c)
			if !c.Flags().Changed("worker-type") {
				a.bad("--worker-type is missing: name the one whose record is to be overridden")
			}
			if !c.Flags().Changed("seq") {
				a.bad("--seq is missing: give the number of the newest record, as leasectl inspect slots shows it")
			}
			if err := a.usage(c); err != nil {
				return err
			}
			if !o.Yes && !isTerminal(a.stdin) {
				o.Ask = nil
			}
			o.InstanceID = operator()
			return override.Run(c.Context(), t, o, override.Screen{Plan: a.told(), Result: a.shown})
		},
	}
	o.Ask = func(question string) (string, error) { return a.ask(c.Context(), question) }
	flags := c.Flags()
	flags.SortFlags = false
	option(a, flags, &o.WorkerType, "worker-type", "TYPE", "worker type (required)", workerType)
	option(a, flags, &o.Seq, "seq", "N", "the newest record, which is to be overridden (required)", seq)
	option(a, flags, &o.DoneUntil, "done-until", "TIME", "up to when slots are done from then on, such as 2026-03-02T12:00:00Z", instant)
	option(a, flags, &o.Reason, "reason", "TEXT", "why, for people who look at the ledger later", nonEmpty)
	flags.BoolVar(&o.Yes, "yes", false, "show what it risks, but don't ask")
	option(a, flags, &o.Timeout, "timeout", "DURATION", "how long to wait for the store, before the question and after it (default 10s)", duration(time.Millisecond, time.Hour))
	return c
}

// seq reads the number of a record.
func seq(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > store.MaxSeq {
		return 0, fmt.Errorf("must be a whole number from 1 to %d", int64(store.MaxSeq))
	}
	return n, nil
}

// instant reads a time.
func instant(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.IsZero() {
		return time.Time{}, errors.New("must be a time such as 2026-03-02T12:00:00Z")
	}
	return t, nil
}

// operator labels the person who runs leasectl, as far as the machine knows.
func operator() string {
	name, host := "operator", "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil && h != "" {
		host = h
	}
	label := strings.ToValidUTF8(name+"@"+host, "")
	return label[:min(len(label), 256)]
}
