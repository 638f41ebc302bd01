package workerlease_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
)

// The worker near the store leads, wherever others started first. The policy needs the roster.
func ExampleOptions_policy() {
	clock := clocks.NewFake(noon)
	ledger := memory.New(memory.Options{Clock: clock})
	for _, region := range []string{"us-east", "eu-west"} {
		client := clock.NewClient(ledger, workerlease.ClientOptions{Roster: true})
		o := workerlease.Options{
			WorkerType: "import", InstanceID: region,
			Labels: map[string]string{"region": region},
			Policy: workerlease.PreferLabel("region", "eu-west"),
		}
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
	clock.Advance(exampleT{}, 5*time.Minute)
	// Output:
	// 12:05:00 us-east
	// 12:10:00 eu-west
	// 12:15:00 eu-west
}

// A policy of your own: who has failed of late goes after the others.
func ExamplePolicy() {
	policy := workerlease.Policy(func(own store.Presence, present []store.Presence) (int, string) {
		if own.Failures > 0 {
			return own.Priority + 1, fmt.Sprintf("%d failures", own.Failures)
		}
		return own.Priority, ""
	})
	fmt.Println(policy(store.Presence{Priority: 1, Failures: 2}, nil))
	// Output: 2 2 failures
}

// Who is there, and who holds the lease?
func ExampleClient_Candidates() {
	clock := clocks.NewFake(noon)
	client := clock.NewClient(memory.New(memory.Options{Clock: clock}), workerlease.ClientOptions{Roster: true})
	for rank, name := range []string{"anna", "ben"} {
		o := workerlease.Options{WorkerType: "import", InstanceID: name, Priority: rank}
		worker, err := client.StartTask(context.Background(), o, func(ctx context.Context, _ workerlease.Lease) error {
			<-ctx.Done()
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = worker.StopLeasing(context.Background()) }()
	}
	clock.Advance(exampleT{}, 6*time.Minute)
	candidates, err := client.Candidates(context.Background(), "import")
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range candidates {
		fmt.Printf("%s: %s, holds: %v, missed: %q\n", c.InstanceID, c.Phase, c.Holds, c.Missed)
	}
	// Output:
	// anna: holder, holds: true, missed: ""
	// ben: candidate, holds: false, missed: "anna has it, with priority 0"
}
