package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// noon is when examples with a fake clock begin. It is a boundary: the next slots of
// 5 minutes begin at 12:05 and 12:10.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// exampleT stands for the *testing.T of a test.
type exampleT struct{}

func (exampleT) Helper() {}

func (exampleT) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

// clockTime is a store time to the second.
func clockTime(t time.Time) string { return t.Round(time.Second).Format(time.TimeOnly) }

// Workers take turns, slot by slot. By default the last holder goes first; with Rotate it
// goes last.
func ExampleOptions_turns() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	for _, name := range []string{"anna", "ben"} {
		o := workerlease.Options{WorkerType: "greeter", InstanceID: name, TieBreak: priority.Rotate}
		worker, err := client.StartTask(context.Background(), o, func(ctx context.Context, l workerlease.Lease) error {
			fmt.Println(clockTime(l.Slot.Start), l.InstanceID)
			<-ctx.Done()
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = worker.StopLeasing(context.Background()) }()
		clock.Advance(exampleT{}, 5*time.Minute+time.Second)
	}
	clock.Advance(exampleT{}, 10*time.Minute)
	// Output:
	// 12:05:00 anna
	// 12:10:00 ben
	// 12:15:00 anna
	// 12:20:00 ben
}

// If the holder fails in mid-slot, another worker takes the rest of the slot.
func ExampleOptions_failoverWithin() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	for rank, name := range []string{"anna", "ben"} {
		o := workerlease.Options{WorkerType: "import", InstanceID: name, Priority: rank, FailoverWithin: 20 * time.Second}
		worker, err := client.StartTask(context.Background(), o, func(ctx context.Context, l workerlease.Lease) error {
			fmt.Println(l.InstanceID, "works in the slot of", clockTime(l.Slot.Start))
			if l.InstanceID == "anna" {
				return errors.New("out of memory")
			}
			<-ctx.Done()
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = worker.StopLeasing(context.Background()) }()
	}
	clock.AdvanceTo(exampleT{}, noon.Add(5*time.Minute+20*time.Second))
	// Output:
	// anna works in the slot of 12:00:00
	// ben works in the slot of 12:00:00
	// anna works in the slot of 12:05:00
	// ben works in the slot of 12:05:00
}

// A leader keeps its lease, and its token, from slot to slot. When it stops, another
// worker leads within seconds.
func ExampleOptions_continuous() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	var workers []*workerlease.WorkerLease
	for rank, name := range []string{"anna", "ben"} {
		o := workerlease.Options{
			WorkerType: "leader", InstanceID: name, Priority: rank,
			Continuous: true, FailoverWithin: 20 * time.Second,
		}
		worker, err := client.StartTask(context.Background(), o, func(ctx context.Context, l workerlease.Lease) error {
			fmt.Println(l.InstanceID, "leads")
			<-ctx.Done()
			fmt.Println(l.InstanceID, "leads no more:", context.Cause(ctx))
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = worker.StopLeasing(context.Background()) }()
		workers = append(workers, worker)
	}
	clock.AdvanceTo(exampleT{}, noon.Add(12*time.Minute)) // This passes two boundaries.
	if err := workers[0].StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	clock.Advance(exampleT{}, 20*time.Second)
	holder, _ := workers[1].Holder()
	fmt.Println("now", holder.InstanceID)
	if err := workers[1].StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	// Output:
	// anna leads
	// anna leads no more: leasing stopped
	// ben leads
	// now ben
	// ben leads no more: leasing stopped
}

// With NoFailback, a leader is not replaced while it lives, even by a worker of a higher
// priority.
func ExampleOptions_noFailback() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	lead := func(ctx context.Context, l workerlease.Lease) error {
		fmt.Println(clockTime(l.Slot.Start), l.InstanceID, "leads")
		<-ctx.Done()
		return nil
	}
	o := workerlease.Options{WorkerType: "leader", InstanceID: "low", Priority: 5, Continuous: true, NoFailback: true}
	low, err := client.StartTask(context.Background(), o, lead)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = low.StopLeasing(context.Background()) }()
	clock.AdvanceTo(exampleT{}, noon.Add(6*time.Minute))
	o.InstanceID, o.Priority = "high", 0
	high, err := client.StartTask(context.Background(), o, lead)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = high.StopLeasing(context.Background()) }()
	clock.Advance(exampleT{}, time.Hour)
	fmt.Println("an hour later, low leads:", low.IsHolder())
	// Output:
	// 12:00:00 low leads
	// an hour later, low leads: true
}

// A job is done once for each slot. If an attempt fails, another worker tries again.
func ExampleJob() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	for rank, name := range []string{"anna", "ben"} {
		o := workerlease.Options{
			WorkerType: "report", InstanceID: name, Priority: rank,
			Job: &workerlease.Job{MaxAttempts: 3}, // For each slot, by all workers together.
		}
		worker, err := client.StartTask(context.Background(), o, func(_ context.Context, l workerlease.Lease) error {
			fmt.Printf("%s: attempt %d of %s\n", clockTime(l.Slot.Start), l.Attempt, l.InstanceID)
			if l.Attempt == 1 {
				return errors.New("no paper")
			}
			return nil // The slot is done: nobody runs the job for it again.
		})
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = worker.StopLeasing(context.Background()) }()
	}
	clock.Advance(exampleT{}, 10*time.Minute-time.Second)
	// Output:
	// 12:00:00: attempt 1 of anna
	// 12:00:00: attempt 2 of ben
	// 12:05:00: attempt 1 of anna
	// 12:05:00: attempt 2 of ben
}

// A slot that nobody has begun in time is run late, as soon as a worker is there.
func ExampleJob_catchUp() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	start := func() *workerlease.WorkerLease {
		o := workerlease.Options{WorkerType: "report", Job: &workerlease.Job{CatchUp: workerlease.CatchUpNewest, CatchUpWithin: time.Hour}}
		worker, err := client.StartTask(context.Background(), o, func(_ context.Context, l workerlease.Lease) error {
			fmt.Println("report of", clockTime(l.Slot.Start), "missed:", l.Missed)
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		return worker
	}
	worker := start()
	clock.AdvanceTo(exampleT{}, noon.Add(6*time.Minute))
	if err := worker.StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	clock.AdvanceTo(exampleT{}, noon.Add(17*time.Minute)) // Nobody runs in the slot of 12:10, nor early in that of 12:15.
	worker = start()
	clock.AdvanceTo(exampleT{}, noon.Add(21*time.Minute))
	if err := worker.StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	// Output:
	// report of 12:00:00 missed: false
	// report of 12:05:00 missed: false
	// report of 12:15:00 missed: true
	// report of 12:20:00 missed: false
}

// A job may begin late, and take longer than its slot: those that begin meanwhile are skipped. It is
// bounded all the same.
func ExampleJob_overrun() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{
		Observer: event.ObserverFunc(func(e event.Event) {
			if e, ok := e.(event.Skipped); ok {
				fmt.Println("skipped", clockTime(e.Slot.Start), "because of", clockTime(e.Running.Start))
			}
		}),
	})
	o := workerlease.Options{WorkerType: "report", Job: &workerlease.Job{
		StartWithin: time.Minute, Overrun: workerlease.Finish, Timeout: 2 * time.Hour,
	}}
	worker, err := client.StartTask(context.Background(), o, func(ctx context.Context, l workerlease.Lease) error {
		fmt.Println("report of", clockTime(l.Slot.Start))
		select {
		case <-clock.After(7 * time.Minute):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	clock.AdvanceTo(exampleT{}, noon.Add(11*time.Minute))
	fmt.Println("done until", clockTime(worker.Status().DoneUntil))
	if err := worker.StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	// Output:
	// report of 12:00:00
	// skipped 12:05:00 because of 12:00:00
	// report of 12:10:00
	// done until 12:10:00
}

// Whoever starts a worker with WaitForBoundary leaves what is left of the current slot to others.
func ExampleOptions_waitForBoundary() {
	clock := clocks.NewFake(noon.Add(time.Minute))
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	o := workerlease.Options{WorkerType: "leader", Continuous: true, FailoverWithin: 10 * time.Second, WaitForBoundary: true}
	worker, err := client.StartTask(context.Background(), o, func(ctx context.Context, l workerlease.Lease) error {
		fmt.Println("leads from", clockTime(l.Start))
		<-ctx.Done()
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	clock.AdvanceTo(exampleT{}, noon.Add(6*time.Minute))
	if err := worker.StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	// Output: leads from 12:05:00
}

// The slots of a cron schedule last from one firing to the next, also when the clocks of
// its time zone change.
func ExampleOptions_schedule() {
	clock := clocks.NewFake(time.Date(2027, 3, 26, 12, 0, 0, 0, time.UTC))
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	o := workerlease.Options{WorkerType: "nightly", Schedule: slots.Must(slots.Cron("30 2 * * *", "Europe/Berlin"))}
	worker, err := client.StartTask(context.Background(), o, func(_ context.Context, l workerlease.Lease) error {
		fmt.Println(l.Slot.Start.Format(time.DateTime), "for", l.Slot.Length())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	clock.Advance(exampleT{}, 60*time.Hour)
	if err := worker.StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	// Output:
	// 2027-03-27 01:30:00 for 23h30m0s
	// 2027-03-28 01:00:00 for 23h30m0s
}

// A worker of a higher priority wins the next slot when it comes back. While it is away,
// no slot is lost.
func ExampleOptions_priority() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	start := func(name string, rank int) *workerlease.WorkerLease {
		o := workerlease.Options{WorkerType: "billing", InstanceID: name, Priority: rank}
		worker, err := client.StartTask(context.Background(), o, func(ctx context.Context, l workerlease.Lease) error {
			fmt.Println(clockTime(l.Slot.Start), l.InstanceID)
			<-ctx.Done()
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		return worker
	}
	west := start("west", 1)
	clock.AdvanceTo(exampleT{}, noon.Add(6*time.Minute))
	east := start("east", 0)
	clock.AdvanceTo(exampleT{}, noon.Add(11*time.Minute))
	if err := east.StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	clock.AdvanceTo(exampleT{}, noon.Add(16*time.Minute))
	if err := west.StopLeasing(context.Background()); err != nil {
		log.Print(err)
	}
	// Output:
	// 12:05:00 west
	// 12:10:00 east
	// 12:15:00 west
}

// All workers of a group hold the lease together, under one token.
func ExampleOptions_group() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{})
	tokens := map[int64]bool{}
	leases := make(chan workerlease.Lease, 3)
	for _, o := range []workerlease.Options{
		{InstanceID: "east-1", Group: "east"},
		{InstanceID: "east-2", Group: "east"},
		{InstanceID: "west-1", Group: "west", Priority: 1},
	} {
		o.WorkerType = "importer"
		worker, err := client.StartTask(context.Background(), o, func(ctx context.Context, l workerlease.Lease) error {
			leases <- l
			<-ctx.Done()
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = worker.StopLeasing(context.Background()) }()
	}
	clock.Advance(exampleT{}, 6*time.Minute)
	for range len(leases) {
		l := <-leases
		tokens[l.Token] = true
		fmt.Println(l.InstanceID, "works")
	}
	fmt.Println(len(tokens), "token")
	// Unordered output:
	// east-1 works
	// east-2 works
	// 1 token
}
