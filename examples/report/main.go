// Report makes a report once in each slot: not once for each worker, and not again
// when it is done. The first attempt fails, as the printer has no paper; another
// worker tries again, and the slot is done. After two slots it ends.
//
//	go run ./examples/report
//
// In earnest, each worker is a process of its own, and opens the same ledger.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, nil); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// options are those of a worker that does what is to be done once per slot. A
// nightly report has slots.Cron as its Schedule.
func options(name string, rank int) workerlease.Options {
	return workerlease.Options{
		WorkerType:     "report",
		InstanceID:     name,
		Priority:       rank,
		LeaseInterval:  3 * time.Second,
		Job:            &workerlease.Job{MaxAttempts: 3}, // in each slot, by all workers together
		FailoverWithin: 500 * time.Millisecond,           // try again if a worker dies at it
	}
}

// run shows two workers. The clock is for its test; nil is the real one.
func run(ctx context.Context, w io.Writer, c clock.Clock) error {
	out := log.New(w, "", 0)
	ledger := memory.New(memory.Options{Clock: c})
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	// Tells what the task's errors and nils have led to. It is called by both workers.
	var done atomic.Int32
	observer := workerlease.ObserverFunc(func(e workerlease.Event) {
		switch e := e.(type) {
		case workerlease.TaskFailed:
			out.Printf("%s failed: %v", e.InstanceID, e.Err)
		case workerlease.Exhausted:
			out.Printf("%s: nobody tries again after %d attempts", e.InstanceID, e.Attempts)
		case workerlease.SlotDone:
			n := done.Add(1)
			out.Printf("%s is done with slot %d", e.InstanceID, n)
			if n == 2 {
				cancel()
			}
		}
	})
	var attempts atomic.Int32
	var workers sync.WaitGroup
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Clock: c, Observer: observer})
	for rank, name := range []string{"anna", "ben"} {
		workers.Go(func() {
			err := client.Run(ctx, options(name, rank), func(_ context.Context, l workerlease.Lease) error {
				out.Printf("%s makes the report", l.InstanceID)
				if attempts.Add(1) == 1 {
					return errors.New("the printer has no paper")
				}
				return nil
			})
			if err != nil {
				out.Printf("%s: %v", name, err)
			}
		})
	}
	workers.Wait()
	return nil
}
