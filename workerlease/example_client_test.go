package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// One client runs workers of many types, and measures store time once for all of them.
// Here a hundred tenants are each served by one of two nodes.
func ExampleClient_StartTask() {
	clock := clocks.NewFake(noon)
	ledger := memory.New(memory.Options{Clock: clock})
	var served atomic.Int32
	for range 2 { // In production, each node is a process.
		client := clock.NewClient(ledger, workerlease.ClientOptions{})
		for tenant := range 20 {
			o := workerlease.Options{WorkerType: fmt.Sprint("tenant-", tenant)}
			worker, err := client.StartTask(context.Background(), o, func(context.Context, workerlease.Lease) error {
				served.Add(1)
				return nil
			})
			if err != nil {
				log.Fatal(err)
			}
			defer func() { _ = worker.StopLeasing(context.Background()) }()
		}
	}
	clock.Advance(exampleT{}, 6*time.Minute)
	fmt.Println(served.Load(), "tenants served")
	// Output:
	// 20 tenants served
}

// A worker reports each change of its lease to LeaseExtended as well, if leases go on.
func ExampleClient_StartLeasing() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	worker, err := client.StartLeasing(context.Background(),
		workerlease.Options{WorkerType: "leader", Continuous: true},
		workerlease.Callbacks{
			LeaseAllocated: func(_ context.Context, l workerlease.Lease) { fmt.Println("until", clockTime(l.Expiry)) },
			LeaseExtended:  func(l workerlease.Lease) { fmt.Println("extended to", clockTime(l.Expiry)) },
			LeaseExpired:   func(_ workerlease.Lease, why workerlease.Reason) { fmt.Println("over:", why) },
		})
	if err != nil {
		log.Fatal(err)
	}
	clock.AdvanceTo(exampleT{}, noon.Add(11*time.Minute))
	if err := worker.StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	// Output:
	// until 12:05:00
	// extended to 12:10:00
	// extended to 12:15:00
	// over: stopped
}

// Claim a slot now, or learn who has it.
func ExampleTryClaim() {
	ctx := context.Background()
	ledger := memory.New(memory.Options{})
	claim, err := workerlease.TryClaim(ctx, ledger, workerlease.Options{WorkerType: "migration", InstanceID: "pod-1"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = workerlease.TryClaim(ctx, ledger, workerlease.Options{WorkerType: "migration", InstanceID: "pod-2"})
	fmt.Println("pod-2:", errors.Is(err, workerlease.ErrNotClaimed))
	fmt.Println(claim.Lease.InstanceID, "migrates:", claim.Context().Err() == nil)
	if err := claim.Release(ctx); err != nil {
		log.Print(err)
	}
	fmt.Println(context.Cause(claim.Context()))
	// Output:
	// pod-2: true
	// pod-1 migrates: true
	// leasing stopped
}

// A claim of a job can be completed. Then nobody claims that slot again.
func ExampleClaim_Complete() {
	ctx := context.Background()
	ledger := memory.New(memory.Options{})
	o := workerlease.Options{WorkerType: "migration", LeaseInterval: 24 * time.Hour, Job: &workerlease.Job{StartWithin: 24 * time.Hour}}
	claim, err := workerlease.TryClaim(ctx, ledger, o)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("attempt", claim.Lease.Attempt)
	fmt.Println(claim.Complete(ctx))
	_, err = workerlease.TryClaim(ctx, ledger, o)
	fmt.Println(errors.Is(err, workerlease.ErrNotClaimed))
	// Output:
	// attempt 1
	// <nil>
	// true
}

// Something that is started by another event runs only where the lease is held.
func ExampleWorkerLease_RunIfHeld() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	worker, err := client.StartLeasing(context.Background(),
		workerlease.Options{WorkerType: "mailer", Continuous: true},
		workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = worker.StopLeasing(context.Background()) }()
	onMessage := func() {
		held, err := worker.RunIfHeld(context.Background(), func(context.Context, workerlease.Lease) error {
			fmt.Println("mail sent")
			return nil
		})
		fmt.Println(held, err)
	}
	onMessage()
	clock.Advance(exampleT{}, 6*time.Minute)
	onMessage()
	// Output:
	// false <nil>
	// mail sent
	// true <nil>
}

// An observer gets every event as a value, here to count slots that nobody worked in.
func ExampleClientOptions_observer() {
	clock := clocks.NewFake(noon)
	missed := map[workerlease.Reason]int{}
	count := event.ObserverFunc(func(e event.Event) {
		switch e := e.(type) {
		case event.Allocated:
			fmt.Println(e.Of().WorkerType, "works in", clockTime(e.Lease.Slot.Start))
		case event.Missed:
			missed[e.Why]++
		}
	})
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{Observer: count})
	worker, err := client.StartLeasing(context.Background(), workerlease.Options{WorkerType: "mailer"},
		workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}})
	if err != nil {
		log.Fatal(err)
	}
	clock.Advance(exampleT{}, 11*time.Minute)
	if err := worker.StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	fmt.Println(len(missed), "missed")
	// Output:
	// mailer works in 12:05:00
	// mailer works in 12:10:00
	// 0 missed
}

// Log every event by log/slog.
func ExampleClientOptions_logger() {
	clock := clocks.NewFake(noon)
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "late" || a.Key == "at" { // They vary from run to run.
			return slog.Attr{}
		}
		return a
	}})
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}),
		workerlease.ClientOptions{Logger: slog.New(handler)})
	worker, err := client.StartTask(context.Background(), workerlease.Options{WorkerType: "mailer", InstanceID: "pod-1"},
		func(context.Context, workerlease.Lease) error { return errors.New("no route to host") })
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = worker.StopLeasing(context.Background()) }()
	clock.Advance(exampleT{}, 5*time.Minute+time.Second)
	// Output:
	// level=INFO msg="lease allocated" slot="[2026-01-01T12:05:00Z, 2026-01-01T12:10:00Z)" token=1767269100000 workerType=mailer instanceId=pod-1
	// level=WARN msg="task failed" slot="[2026-01-01T12:05:00Z, 2026-01-01T12:10:00Z)" token=1767269100000 error="no route to host" workerType=mailer instanceId=pod-1
	// level=INFO msg="lease expired" slot="[2026-01-01T12:05:00Z, 2026-01-01T12:10:00Z)" token=1767269100000 why=failed workerType=mailer instanceId=pod-1
	// level=INFO msg="lease released" slot="[2026-01-01T12:05:00Z, 2026-01-01T12:10:00Z)" seq=2 workerType=mailer instanceId=pod-1
}
