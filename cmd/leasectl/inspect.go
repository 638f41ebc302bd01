package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

func (a *app) inspectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect",
		Short: "Look at ledgers; nothing is ever written",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.unknown(c, args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(needsStore(a.inspectSlotsCommand()))
	return c
}

const inspectSlotsHelp = `Show who held, holds and will hold the newest slots of a worker type.

CLAIMED is when the slot was claimed, relative to its start. A slot in which
several held the lease one after the other has a row for each, and the notes say
from when to when, relative to its start; how often a lease was extended within the
slot (--failover-within) makes no difference. One that went on over several slots
(--continuous) has a row for each of them, with the same token. ATTEMPT is how many
times the slot had been begun by then, the row's time included (--once-per-slot); the
column is left out if none was begun again. The states:

  upcoming  claimed, not begun
  held      the lease is in force
  expired   the lease ran to the end of its window
  released  the holder gave the rest of it back
  missed    the slot passed, and nobody had claimed it
  free      the slot has begun, and nobody has claimed it
  done      the slot's work is done (--once-per-slot), or was made up for (--run-missed)
            with whatever result; nobody runs it again. The note says when
  poison    the record can't be obeyed, for the reason that is shown

A record of a kind that this version doesn't know is shown with its kind. All
times are store time, in UTC.

With --output json it prints one object, with --watch one per line whenever
something changed:

  storeTime    time of the store's clock
  store        the store, without secrets
  workerType
  slots        a list, the oldest first, of
    slotStart, slotEnd      left out if the record doesn't tell
    state                   see above
    seq, kind               of the record; left out if there is none
    extended, newestSeq     how often the lease was extended within the slot, and
                            the number of the newest record; left out if never
    instanceId, group       of the holder
    priority, token
    attempt                 how many times the slot had been begun by then; left out
                            if that isn't counted
    claimedMs               when it was claimed, in ms after slotStart
    windowStart, windowEnd  what the record grants, and its extensions
    releasedAt              when the rest was given back
    missedSlots             how many slots the row stands for, if several
    note                    for people
  requestUnits what the store charged for the command so far: a total, and
               byOperation; left out if it charges nothing

Times are RFC 3339 in UTC with milliseconds.`

// inspectFlags are the options of inspect slots.
type inspectFlags struct {
	workerType string
	last       int
	output     string
	watch      bool
	interval   time.Duration
	timeout    time.Duration
	limit      int // records to begin with
}

func (a *app) inspectSlotsCommand() *cobra.Command {
	f := inspectFlags{last: 10, output: "table", interval: time.Second, timeout: defaultTimeout}
	c := &cobra.Command{
		Use:     "slots [--worker-type TYPE]",
		Short:   "Show who held, holds and will hold the newest slots",
		Long:    inspectSlotsHelp,
		Example: "  leasectl inspect slots --worker-type invoice-export --last 20 --watch",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.target(c)
			if text, ok := given(c.Flags(), "interval"); ok && !f.watch {
				a.bad("--interval %q: goes with --watch only", text)
			}
			if err := a.usage(c); err != nil {
				return err
			}
			return a.inspectSlots(c.Context(), t, f)
		},
	}
	flags := c.Flags()
	option(a, flags, &f.workerType, "worker-type", "TYPE", "worker type (default: the only one in the ledger)", workerType)
	option(a, flags, &f.last, "last", "N", "how many slots to show (default 10)", number(1, 1000, ""))
	option(a, flags, &f.output, "output", "table|json", "how to show them (default table)", oneOf("table", "json"))
	flags.BoolVar(&f.watch, "watch", false, "show them again and again, until Ctrl-C")
	option(a, flags, &f.interval, "interval", "DURATION", "how often to look, with --watch (default 1s)", duration(100*time.Millisecond, time.Hour))
	option(a, flags, &f.timeout, "timeout", "DURATION", "how long to wait for the store (default 10s)", duration(time.Millisecond, time.Hour))
	return c
}

func (a *app) inspectSlots(ctx context.Context, t storeuri.Target, f inspectFlags) (err error) {
	opening, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	ledger, err := t.Open(opening, true)
	if err != nil {
		return advice.ForStore(t, err)
	}
	defer func() { err = errors.Join(err, advice.ForStore(t, storeuri.Close(ctx, ledger))) }()
	return a.showSlots(ctx, t, ledger, f)
}

// showSlots shows the slots of a ledger, once or again and again.
func (a *app) showSlots(ctx context.Context, t storeuri.Target, l store.Ledger, f inspectFlags) error {
	ledger := &charges.Ledger{Ledger: l}
	look := func() (snapshot, error) {
		limited, cancel := context.WithTimeout(ctx, f.timeout)
		defer cancel()
		if f.workerType == "" {
			var err error
			if f.workerType, err = onlyType(limited, t, ledger); err != nil {
				return snapshot{}, err
			}
		}
		s, err := takeSnapshot(limited, t, ledger, f)
		f.limit = max(f.limit, s.limit)
		s.charges = ledger.Charges()
		return s, advice.ForStore(t, err)
	}
	if f.watch {
		return a.watch(ctx, f, look)
	}
	s, err := look()
	if err != nil {
		return err
	}
	if f.output == "json" {
		return s.writeJSON(a.stdout, true)
	}
	a.showTable(s)
	return nil
}

// onlyType is the worker type of a ledger that has just one, or "" if it has none.
func onlyType(ctx context.Context, t storeuri.Target, l store.Ledger) (string, error) {
	types, err := l.WorkerTypes(ctx)
	if err != nil {
		return "", advice.ForStore(t, err)
	}
	if len(types) < 2 {
		return strings.Join(types, ""), nil
	}
	return "", exit.BadUsage("--worker-type "+types[0], fmt.Errorf("the ledger has %d worker types, name one with --worker-type: %s", len(types), listed(types)))
}

// listed are some names in a line.
func listed(names []string) string {
	const most = 20
	list := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		list += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return list
}

// snapshot is the state of a worker type's slots at a moment.
type snapshot struct {
	at         time.Time
	store      string
	workerType string
	rows       []history.Entry
	others     []string // worker types that there are, if this one has no records
	dated      bool     // the table is read later: its times need their dates
	limit      int      // how many records had to be read, at most
	charges    workerlease.Charges
}

// mostRecords bounds how much is read of a ledger in which leases are extended.
const mostRecords = 10_000

// takeSnapshot reads enough of the ledger: a slot has a grant and perhaps a
// release, and then some. If leases are extended it takes more, as often as needed;
// how many records sufficed is told by the snapshot, for the next time.
func takeSnapshot(ctx context.Context, t storeuri.Target, l store.Ledger, f inspectFlags) (snapshot, error) {
	found := snapshot{store: t.Shown, workerType: f.workerType}
	var records []store.Record
	var stamp store.Stamp
	var err error
	for found.limit = max(f.limit, 3*f.last+10); f.workerType != ""; found.limit = min(4*found.limit, mostRecords) {
		records, stamp, err = l.Tail(ctx, f.workerType, found.limit)
		if err == nil && stamp.IsZero() {
			stamp, err = l.Now(ctx)
		}
		found.rows = history.Read(records, stamp.Time, nil)
		// One row more, because the first may have begun before.
		if err != nil || len(found.rows) > f.last || len(records) < found.limit || found.limit >= mostRecords {
			break
		}
	}
	if err == nil && stamp.IsZero() {
		stamp, err = l.Now(ctx)
	}
	if err != nil {
		return snapshot{}, err
	}
	found.at, found.rows = stamp.Time, found.rows[max(0, len(found.rows)-f.last):]
	if f.workerType != "" && len(found.rows) == 0 {
		found.others, err = l.WorkerTypes(ctx)
	}
	return found, err
}
