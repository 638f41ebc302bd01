// Package demo shows leasing at work: three workers, one of which is killed and comes back,
// on a temporary ledger. It judges by the lines that their work wrote whether two ever
// worked at once.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

// Options are the options of the demo.
type Options struct {
	Slots    int           // how many to show; at least 6
	Interval time.Duration // the length of the slots
	Keep     bool          // the ledger and the logs
}

// Host is what the demo runs in.
type Host struct {
	Out     io.Writer
	Colours bool
	Env     []string // of the workers
	// Urgent is closed when the workers are to be killed rather than stopped.
	Urgent <-chan struct{}
}

const (
	// workerType is the worker type of the demo.
	workerType = "demo"
	// readyWithin is how long the workers may take to start.
	readyWithin = 12 * time.Second
	// lookEvery is how often the demo looks what happened.
	lookEvery = 20 * time.Millisecond
	// stopEarly is how long before the end of the last slot the workers are stopped: its
	// work has ended by then, and that of the next slot has not begun.
	stopEarly = 15 * time.Millisecond
)

// demo is one run of it.
type demo struct {
	plan    plan
	ledger  store.Ledger
	workers *workers
	log     *WorkLog
	zero    time.Time // store time at 0 of the boot clock
	screen  *screen
	urgent  <-chan struct{}
}

// Run runs the demo. Its error has the exit code.
func Run(ctx context.Context, o Options, h Host) (err error) {
	if !guard.Supported {
		return advice.ForCommand("demo", guard.ErrUnsupported)
	}
	ctx, stop := interrupt.UntilUnread(ctx)
	defer stop()
	dir, err := os.MkdirTemp("", "leasectl-demo-")
	if err != nil {
		return err
	}
	d := &demo{screen: &screen{out: h.Out, colours: h.Colours}, urgent: h.Urgent}
	defer func() {
		if o.Keep {
			d.screen.printf("Kept: %s\n", dir)
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
	defer func() { err = errors.Join(err, storeuri.Close(ctx, d.ledger)) }()
	if err := d.ledger.Init(ctx); err != nil {
		return err
	}
	d.log = &WorkLog{Path: filepath.Join(dir, "work.log")}
	d.workers = newWorkers(h.Env, dir, path, d.log.Path, o.Interval)
	defer d.workers.stop(d.urgent)
	d.screen.title(o, path)
	return d.play(ctx, o)
}

// play starts the workers, shows what happens, and judges it.
func (d *demo) play(ctx context.Context, o Options) error {
	if err := d.workers.startAll(); err != nil {
		return err
	}
	if err := d.workers.awaitReady(ctx, readyWithin); err != nil {
		return ended(err)
	}
	if err := d.setClock(ctx); err != nil {
		return err
	}
	d.plan = newPlan(o, d.now())
	d.screen.begin(d.plan.start(0).Sub(d.now()))
	if err := d.watch(ctx); err != nil {
		return ended(err)
	}
	d.workers.stop(d.urgent)
	lines, err := d.log.Read()
	if err != nil {
		return err
	}
	records, _, err := d.ledger.Tail(ctx, workerType, 2*o.Slots+100)
	if err != nil {
		return ended(err)
	}
	v := judge(d.plan, lines, records, d.zero)
	d.screen.summary(v)
	if len(v.wrong) > 0 {
		return &exit.Error{Problems: v.wrong, Code: exit.Demo}
	}
	return nil
}

// ended is the error of a demo that failed, or was interrupted.
func ended(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, interrupt.Err) || errors.Is(err, interrupt.ErrUnread) {
		return exit.With(exit.Interrupted, errors.New("demo: interrupted; everything is stopped"))
	}
	return exit.With(exit.Demo, fmt.Errorf("demo: %w", err))
}
