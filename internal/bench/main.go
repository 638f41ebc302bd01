//go:build unix

// Command bench measures the engine on the real clock: many worker types on one client, and
// how fast a lease is handed over. docs/performance.md says what it showed, and on which
// machine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/store/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings of a run.
type settings struct {
	store string
	types int
	slot  time.Duration
	slots int
	json  bool
	file  string

	profile string
}

func run(ctx context.Context, args []string) error {
	var o settings
	flags := pflag.NewFlagSet("bench types|handover", pflag.ContinueOnError)
	flags.StringVar(&o.store, "store", "memory", "store to run on: memory or sqlite")
	flags.IntVar(&o.types, "types", 10_000, "of types: worker types on one client")
	flags.DurationVar(&o.slot, "slot", 10*time.Second, "length of the slots")
	flags.IntVar(&o.slots, "slots", 3, "slots, or hand-overs, to measure")
	flags.BoolVar(&o.json, "json", false, "print the figures as JSON")
	flags.StringVar(&o.file, "file", "", "SQLite file to share with other processes that run this at the same time; default: one of its own")
	flags.StringVar(&o.profile, "profile", "", "file for a profile of the processor time that the run takes")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("name what to measure: types or handover")
	}
	if o.file != "" && o.store != "sqlite" {
		return fmt.Errorf("--file %s: it needs --store sqlite", o.file)
	}
	if o.types < 1 || o.slots < 1 {
		return fmt.Errorf("--types %d, --slots %d: both must be positive", o.types, o.slots)
	}
	measure := map[string]func(context.Context, store.Ledger, settings) (any, error){"types": types, "handover": handover}[flags.Arg(0)]
	if measure == nil {
		return fmt.Errorf("%q: measure types or handover", flags.Arg(0))
	}
	ledger, remove, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer remove()
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	figures, err := measure(ctx, ledger, o)
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(os.Stdout).Encode(figures)
	}
	_, err = fmt.Println(figures)
	return err
}

// open makes a new ledger, unless a file is named, and returns what removes it.
func open(ctx context.Context, o settings) (store.Ledger, func(), error) {
	switch o.store {
	case "memory":
		return memory.New(memory.Options{}), func() {}, nil
	case "sqlite":
		if o.file != "" {
			ledger, err := sqlite.Open(ctx, sqlite.Options{Path: o.file})
			return ledger, func() { _ = ledger.Close(context.Background()) }, err
		}
		dir, err := os.MkdirTemp("", "slotlease-bench-")
		if err != nil {
			return nil, nil, err
		}
		ledger, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "leases.db")})
		if err != nil {
			return nil, nil, errors.Join(err, os.RemoveAll(dir))
		}
		return ledger, func() {
			_ = ledger.Close(context.Background())
			_ = os.RemoveAll(dir)
		}, nil
	}
	return nil, nil, fmt.Errorf("--store %q: use memory or sqlite", o.store)
}
