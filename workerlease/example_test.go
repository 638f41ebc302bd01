package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// Of all workers of a type, on any number of machines, one is allocated in each
// slot.
func ExampleStartLeasing() {
	ledger := memory.New(memory.Options{}) // in earnest: store/mongo, store/cosmos, store/sqlite
	started := make(chan struct{}, 1)
	worker, err := workerlease.StartLeasing(context.Background(), ledger,
		workerlease.Options{WorkerType: "invoice-export", LeaseInterval: 2 * time.Second},
		workerlease.Callbacks{
			LeaseAllocated: func(ctx context.Context, lease workerlease.Lease) {
				fmt.Println("exporting invoices") // and passing lease.Token along with each write
				started <- struct{}{}
				<-ctx.Done()
			},
			LeaseExpired: func(_ workerlease.Lease, why workerlease.Reason) { fmt.Println("done:", why) },
		})
	if err != nil {
		log.Fatal(err)
	}
	<-started
	if err := worker.StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	// Output:
	// exporting invoices
	// done: stopped
}

// Give the code some time to stop, as before the process ends. What then holds it
// up is in the error.
func ExampleWorkerLease_StopLeasing() {
	ledger := memory.New(memory.Options{})
	started, let := make(chan struct{}, 1), make(chan struct{})
	worker, err := workerlease.StartLeasing(context.Background(), ledger,
		workerlease.Options{WorkerType: "report", LeaseInterval: time.Second, JoinMidSlot: true},
		workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {
			started <- struct{}{}
			<-let // It should have watched its context.
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
	close(let)
	<-worker.Done()
	// Output:
	// stop leasing "report": context deadline exceeded: the callbacks have not returned
	// true
}

// A client shares one estimate of store time among workers of many types. Each
// may have a schedule of its own.
func ExampleClient_StartLeasing() {
	client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{})
	nightly, err := slots.Cron("0 2 * * *", "Europe/Berlin")
	if err != nil {
		log.Fatal(err)
	}
	work := workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) { <-ctx.Done() }}
	for _, o := range []workerlease.Options{
		{WorkerType: "clean-up", Schedule: nightly},
		{WorkerType: "poll-mail", LeaseInterval: time.Minute, Priority: 1},
	} {
		worker, err := client.StartLeasing(context.Background(), o, work)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(worker.Status().WorkerType, worker.Status().Stopped)
		if err := worker.StopLeasing(context.Background()); err != nil {
			log.Print(err)
		}
	}
	// Output:
	// clean-up false
	// poll-mail false
}

// All that is wrong with options is told at once.
func ExampleOptions() {
	_, err := workerlease.StartLeasing(context.Background(), memory.New(memory.Options{}),
		workerlease.Options{WorkerType: "invoice/export", Priority: 12},
		workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}})
	fmt.Println(err)
	// Output:
	// start leasing "invoice/export": invalid options: WorkerType: invalid record: worker type "invoice/export": character '/' at byte 7: use 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or digit
	// Priority: is 12: must be 0 (highest) … 7
}
