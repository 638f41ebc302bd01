// Priority shows a preferred region: east has priority 0 and wins every slot.
// When it stops, west takes over at the next boundary, without a gap; when it
// is back, east wins again, at a boundary as well. Slots take one second.
//
//	go run ./examples/priority
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "priority:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	// Real regions meet in store/mongo. A ledger in memory serves one process.
	ledger := memory.New(memory.Options{})
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	held := make(chan string)

	west, err := start(ctx, ledger, "west", 1, held)
	if err != nil {
		return err
	}
	east, err := start(ctx, ledger, "east", 0, held)
	if err != nil {
		return err
	}
	await(ctx, held, "east", 2)
	fmt.Println("          east stops")
	if err := stop(ctx, east); err != nil {
		return err
	}
	await(ctx, held, "west", 2)
	fmt.Println("          east is back")
	if east, err = start(ctx, ledger, "east", 0, held); err != nil {
		return err
	}
	await(ctx, held, "east", 2)
	return errors.Join(stop(ctx, east), stop(ctx, west))
}

// start starts the worker of a region, which says when it holds a slot.
func start(ctx context.Context, ledger store.Ledger, region string, priority int, held chan<- string) (*workerlease.WorkerLease, error) {
	return workerlease.StartLeasing(ctx, ledger,
		workerlease.Options{WorkerType: "billing", InstanceID: region, Priority: priority, LeaseInterval: time.Second},
		workerlease.Callbacks{
			LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
				fmt.Printf("%s  %s holds the slot\n", l.Slot.Start.Format(time.TimeOnly), region)
				select {
				case held <- region:
				case <-ctx.Done():
				}
			},
		})
}

// await waits until a region has held n slots, or ctx ends.
func await(ctx context.Context, held <-chan string, region string, n int) {
	for n > 0 && ctx.Err() == nil {
		select {
		case r := <-held:
			if r == region {
				n--
			}
		case <-ctx.Done():
		}
	}
}

// stop gives a worker ten seconds to end its work and to release its lease.
func stop(ctx context.Context, w *workerlease.WorkerLease) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return w.StopLeasing(ctx)
}
