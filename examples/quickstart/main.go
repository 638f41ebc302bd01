// Quickstart runs three workers of one type on a ledger in a temporary SQLite
// file. They take turns, and it shows who holds each slot of two seconds. After
// four slots it ends.
//
//	go run ./examples/quickstart
//
// In earnest, each worker is a process of its own, and opens the same ledger.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "quickstart-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ledger, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "leases.db")})
	if err != nil {
		return err
	}
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var slots atomic.Int32

	var workers []*workerlease.WorkerLease
	for _, name := range []string{"anna", "ben", "cleo"} {
		w, err := workerlease.StartLeasing(ctx, ledger,
			workerlease.Options{
				WorkerType:    "greeter",
				InstanceID:    name,
				LeaseInterval: 2 * time.Second,
				TieBreak:      priority.Rotate, // they have one priority, so let them take turns
			},
			workerlease.Callbacks{
				// ctx ends shortly before the slot does: work must stop then.
				LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
					fmt.Printf("%s  %s holds the slot, token %d\n", l.Slot.Start.Format(time.TimeOnly), l.InstanceID, l.Token)
					<-ctx.Done()
				},
				LeaseExpired: func(l workerlease.Lease, why workerlease.Reason) {
					fmt.Printf("%s  %s is done: %s\n", l.Slot.Start.Format(time.TimeOnly), l.InstanceID, why)
					if slots.Add(1) == 4 {
						cancel()
					}
				},
				Error: func(err error) { fmt.Fprintln(os.Stderr, "quickstart:", err) },
			})
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	// The end of ctx stops the workers. Wait for them before the ledger is closed.
	for _, w := range workers {
		<-w.Done()
	}
	return nil
}
