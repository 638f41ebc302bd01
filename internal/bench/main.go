//go:build unix

// Command bench measures the engine on the real clock: many worker types on one client.
// docs/performance.md says what it showed, and on which machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
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
}

func run(ctx context.Context, args []string) error {
	var o settings
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.StringVar(&o.store, "store", "memory", "store to run on: memory or sqlite")
	flags.IntVar(&o.types, "types", 10_000, "worker types on one client")
	flags.DurationVar(&o.slot, "slot", 10*time.Second, "length of the slots")
	flags.IntVar(&o.slots, "slots", 3, "slots to measure")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.types < 1 || o.slots < 1 {
		return fmt.Errorf("--types %d, --slots %d: both must be positive", o.types, o.slots)
	}
	ledger, remove, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer remove()
	figures, err := types(ctx, ledger, o)
	if err != nil {
		return err
	}
	_, err = fmt.Println(figures)
	return err
}

// open makes a new ledger, and returns what removes it.
func open(ctx context.Context, o settings) (store.Ledger, func(), error) {
	switch o.store {
	case "memory":
		return memory.New(memory.Options{}), func() {}, nil
	case "sqlite":
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
