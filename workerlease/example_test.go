package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// Run a task under a lease. Among all processes that call this, on any number of
// machines, one runs the task at a time.
func ExampleRun() {
	ctx, shutDown := context.WithCancel(context.Background())
	ledger := memory.New(memory.Options{}) // In production: store/mongo, store/cosmos or store/sqlite.
	o := workerlease.Options{WorkerType: "invoice-export", FailoverWithin: 30 * time.Second}
	err := workerlease.Run(ctx, ledger, o, func(ctx context.Context, l workerlease.Lease) error {
		fmt.Println("exporting invoices") // Pass l.Token along with each write.
		shutDown()
		<-ctx.Done() // It ends before the lease does.
		return nil
	})
	fmt.Println("shut down:", err)
	// Output:
	// exporting invoices
	// shut down: <nil>
}

// With callbacks, the worker reports when its lease begins and ends. Returning from
// LeaseAllocated does not end the lease.
func ExampleStartLeasing() {
	ledger := memory.New(memory.Options{})
	started := make(chan struct{})
	worker, err := workerlease.StartLeasing(context.Background(), ledger,
		workerlease.Options{WorkerType: "invoice-export", FailoverWithin: 30 * time.Second},
		workerlease.Callbacks{
			LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
				fmt.Println("exporting invoices")
				close(started)
			},
			LeaseExpired: func(_ workerlease.Lease, why workerlease.Reason) { fmt.Println("over:", why) },
		})
	if err != nil {
		log.Fatal(err) // Bad options, all of them at once.
	}
	<-started
	if err := worker.StopLeasing(context.Background()); err != nil { // This releases the lease.
		log.Print(err)
	}
	// Output:
	// exporting invoices
	// over: stopped
}

// StartTask is Run in the background. The worker it returns shows its status.
func ExampleStartTask() {
	started := make(chan struct{})
	worker, err := workerlease.StartTask(context.Background(), memory.New(memory.Options{}),
		workerlease.Options{WorkerType: "sitemap", InstanceID: "web-1", FailoverWithin: 30 * time.Second},
		func(ctx context.Context, _ workerlease.Lease) error {
			close(started)
			<-ctx.Done()
			return nil
		})
	if err != nil {
		log.Fatal(err)
	}
	<-started
	holder, held := worker.Holder()
	fmt.Println(held, holder.InstanceID, worker.IsHolder())
	if err := worker.StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	fmt.Println(worker.Status())
	// Output:
	// true web-1 true
	// sitemap: web-1: stopped
}

// Limit how long stopping may take. The error says what was waited for.
func ExampleWorkerLease_StopLeasing() {
	started, end := make(chan struct{}), make(chan struct{})
	worker, err := workerlease.StartLeasing(context.Background(), memory.New(memory.Options{}),
		workerlease.Options{WorkerType: "report", FailoverWithin: 30 * time.Second},
		workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {
			close(started)
			<-end // It should have watched its context.
		}})
	if err != nil {
		log.Fatal(err)
	}
	<-started
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err = worker.StopLeasing(ctx)
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	close(end)
	<-worker.Done()
	// Output:
	// stop leasing "report": context deadline exceeded: the callbacks have not returned
	// true
}

// All problems with options are reported at once, each with the field's name.
func ExampleOptionErrors() {
	_, err := workerlease.Options{WorkerType: "report", Priority: 12, MaxBackoff: 2 * time.Hour}.Resolved()
	fmt.Println(errors.Is(err, workerlease.ErrOptions))
	for _, e := range workerlease.OptionErrors(err) {
		fmt.Printf("%s %q %s\n", e.Field, e.Value, e.Rule)
	}
	// Output:
	// true
	// Priority "12" must be 0 (highest) … 7
	// MaxBackoff "2h0m0s" must be 0 (default) or 1ms … 1h
}

// Timing shows what follows from options, before anything is started.
func ExampleOptions_Timing() {
	t, err := workerlease.Options{WorkerType: "report", FailoverWithin: time.Minute}.Timing()
	if err != nil {
		log.Fatal(err)
	}
	slot := t.Options.Schedule.At(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	fmt.Println("claims open", t.Lead(slot), "before the slot")
	fmt.Println("it is taken in", len(t.Parts(slot)), "parts, each extended", t.ExtendEarly, "before its end")
	fmt.Println("work stops", t.Options.Margin, "before the end of the lease")
	// Output:
	// claims open 10s before the slot
	// it is taken in 8 parts, each extended 15s before its end
	// work stops 250ms before the end of the lease
}
