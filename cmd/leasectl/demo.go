package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

const demoHelp = `Show leasing at work, with nothing to set up: three workers, real processes
with priorities 0, 1 and 2, on a temporary SQLite ledger. In each slot one of
them works. The leader is killed with SIGKILL halfway through a slot, and later
comes back and takes the lease back at a boundary.

The work is a process that writes a line when it begins, every 100 ms, and when
it ends, with the machine's boot clock and its token. Whether two ever worked at
once, and how long nobody worked at a boundary, is computed from these lines,
not from the ledger. At the end the ledger is checked, too.

With 9 slots of 3 s, the defaults, it takes about half a minute. It exits with
code 8 if anything was not as it should be.`

// demoFlags are the options of demo.
type demoFlags struct {
	slots    int
	interval time.Duration
	keep     bool
}

func (a *app) demoCommand() *cobra.Command {
	f := demoFlags{slots: 9, interval: 3 * time.Second}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show leasing at work: three workers, a crash and a return",
		Long:  demoHelp,
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.usage(c); err != nil {
				return err
			}
			return a.demo(c.Context(), f)
		},
	}
	option(a, c.Flags(), &f.slots, "slots", "N", "how many slots to show (default 9)", number(6, 1000, ""))
	option(a, c.Flags(), &f.interval, "interval", "DURATION", "length of the slots (default 3s)", duration(time.Second, time.Hour))
	c.Flags().BoolVar(&f.keep, "keep", false, "keep the ledger and the logs")
	return c
}

const (
	// demoType is the worker type of the demo.
	demoType = "demo"
	// demoReady is how long the workers may take to start.
	demoReady = 12 * time.Second
	// demoLook is how often the demo looks what happened.
	demoLook = 20 * time.Millisecond
	// demoLeave is how long before the end of the last slot the workers are told
	// to stop: its work has ended by then, and the next slot's has not begun.
	demoLeave = 15 * time.Millisecond
)

// demo is one run of it.
type demo struct {
	*app
	plan   demoPlan
	dir    string
	ledger store.Ledger
	cast   *cast
	log    *workLog
	zero   time.Time // store time at 0 of the boot clock
	screen *screen
}

func (a *app) demo(ctx context.Context, f demoFlags) (err error) {
	if !guard.Supported {
		return advice.ForCommand("demo", guard.ErrUnsupported)
	}
	ctx, stop := interrupt.UntilUnread(ctx)
	defer stop()
	dir, err := os.MkdirTemp("", "leasectl-demo-")
	if err != nil {
		return err
	}
	d := &demo{app: a, dir: dir, screen: newScreen(a)}
	defer func() {
		if f.keep {
			a.printf("Kept: %s\n", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	path := filepath.Join(dir, "leases.db")
	ledger, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return err
	}
	d.ledger = ledger
	defer func() { err = errors.Join(err, storeuri.Close(ctx, ledger)) }()
	if err := ledger.Init(ctx); err != nil {
		return err
	}
	d.log = &workLog{path: filepath.Join(dir, "work.log")}
	d.cast = newCast(a.env, dir, path, d.log.path, f.interval)
	defer d.cast.end(a.signals.Urgent)
	d.screen.title(f, path)
	return d.play(ctx, f)
}

// play starts the workers, shows what happens, and judges it.
func (d *demo) play(ctx context.Context, f demoFlags) error {
	if err := d.cast.startAll(); err != nil {
		return err
	}
	if err := d.cast.awaitReady(ctx, demoReady); err != nil {
		return demoEnded(err)
	}
	if err := d.setClock(ctx); err != nil {
		return err
	}
	d.plan = newPlan(f, d.now())
	d.screen.begin(d.plan.start(0).Sub(d.now()))
	if err := d.watch(ctx); err != nil {
		return demoEnded(err)
	}
	d.cast.end(d.signals.Urgent)
	lines, err := d.log.read()
	if err != nil {
		return err
	}
	records, _, err := d.ledger.Tail(ctx, demoType, 2*f.slots+100)
	if err != nil {
		return demoEnded(err)
	}
	v := judge(d.plan, lines, records, d.zero)
	d.screen.summary(v)
	if len(v.wrong) > 0 {
		return &exit.Error{Problems: v.wrong, Code: exit.Demo}
	}
	return nil
}

// demoEnded tells an interrupted demo from one that failed.
func demoEnded(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, interrupt.Err) || errors.Is(err, interrupt.ErrUnread) {
		return exit.With(exit.Interrupted, errors.New("demo: interrupted; everything is stopped"))
	}
	return exit.With(exit.Demo, fmt.Errorf("demo: %w", err))
}

// setClock learns how store time and the boot clock, in which the work logs, are
// related. On one machine the difference is fixed.
func (d *demo) setClock(ctx context.Context) error {
	best := time.Hour
	for range 5 {
		before := guard.Boottime()
		stamp, err := d.ledger.Now(ctx)
		if err != nil {
			return demoEnded(err)
		}
		if trip := guard.Boottime() - before; trip < best {
			best, d.zero = trip, stamp.Time.Add(-before-trip/2)
		}
	}
	return nil
}

// now is store time.
func (d *demo) now() time.Time { return d.zero.Add(guard.Boottime()) }

// watch shows the slots as they begin, and kills and starts the leader as
// planned, until the last slot is over.
func (d *demo) watch(ctx context.Context) error {
	ticker := time.NewTicker(demoLook)
	defer ticker.Stop()
	todo := d.script()
	shown := 0
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-d.cast.died:
			return err
		case <-ticker.C:
		}
		lines, err := d.log.read()
		if err != nil {
			return err
		}
		works := worksOf(lines, d.zero)
		for _, w := range works[min(shown, len(works)):] {
			if d.plan.index(w.slot) >= 0 {
				d.screen.slot(d.plan, works, w, d.cast)
			}
		}
		shown = len(works)
		for len(todo) > 0 && !d.now().Before(todo[0].at) {
			if err := todo[0].do(works); err != nil {
				return err
			}
			todo = todo[1:]
		}
		if len(todo) == 0 {
			return nil
		}
	}
}

// act is something that the demo does at a moment of store time.
type act struct {
	at time.Time
	do func(works []work) error
}

// script is the demo's own part in the play.
func (d *demo) script() []act {
	p := d.plan
	return []act{
		{p.start(p.kill).Add(p.interval / 2), func(works []work) error {
			name := d.cast.top()
			for _, w := range works {
				if w.slot.Equal(p.start(p.kill)) {
					name = w.worker
				}
			}
			pid := d.cast.kill(name)
			d.screen.event(d.now(), fmt.Sprintf("killed %s halfway through its slot (SIGKILL, pid %d)", name, pid), table.Red)
			return nil
		}},
		{p.start(p.back).Add(p.interval / 8), func([]work) error {
			name := d.cast.killed
			d.screen.event(d.now(), "started "+name+" again; it competes for the next boundary", table.Plain)
			return d.cast.start(name)
		}},
		{p.start(p.slots).Add(-demoLeave), func([]work) error { return nil }},
	}
}

// demoPlan says when what happens. Slots count from 0.
type demoPlan struct {
	first      time.Time // start of slot 0
	interval   time.Duration
	slots      int
	kill, back int // in which slot the leader is killed, and started again
}

// newPlan counts from the first boundary whose claims aren't open yet.
func newPlan(f demoFlags, now time.Time) demoPlan {
	s := slots.Must(slots.Every(f.interval))
	kill := max(1, f.slots/3-1)
	return demoPlan{
		first: s.Next(now.Add(f.interval/4 + f.interval/20)).Start, interval: f.interval,
		slots: f.slots, kill: kill, back: max(kill+2, f.slots/2),
	}
}

// start is when slot i starts.
func (p demoPlan) start(i int) time.Time { return p.first.Add(time.Duration(i) * p.interval) }

// index is the number of a slot by its start, or −1 if it isn't shown.
func (p demoPlan) index(start time.Time) int {
	i := int(start.Sub(p.first) / p.interval)
	if start.Before(p.first) || i >= p.slots || !p.start(i).Equal(start) {
		return -1
	}
	return i
}
