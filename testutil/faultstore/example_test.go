package faultstore_test

import (
	"context"
	"fmt"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// An append whose reply is lost is stored all the same: only a look at the key
// can tell.
func Example() {
	ctx := context.Background()
	ledger := faultstore.New(memory.New(memory.Options{}), faultstore.Options{
		Plan: func(c faultstore.Call) faultstore.Fault {
			if c.Op == faultstore.OpAppend && c.N == 1 {
				return faultstore.LostReply()
			}
			return faultstore.Fault{}
		},
	})
	defer func() { _ = ledger.Close(ctx) }()

	mine := storetest.Grant("invoice-export", 1)
	fmt.Println(ledger.Append(ctx, mine))
	found, err := ledger.Get(ctx, "invoice-export", 1)
	fmt.Println(found.Claim == mine.Claim, err)
	fmt.Println(ledger.Struck())
	// Output:
	// faultstore: append "invoice-export", seq 1: injected fault
	// true <nil>
	// map[lost reply:1]
}

// An outage lasts until it is mended.
func ExampleLedger_Break() {
	ctx := context.Background()
	ledger := faultstore.New(memory.New(memory.Options{}), faultstore.Options{})
	defer func() { _ = ledger.Close(ctx) }()

	ledger.Break(faultstore.Down())
	fmt.Println(ledger.Append(ctx, storetest.Grant("invoice-export", 1)))
	ledger.Mend()
	fmt.Println(ledger.Append(ctx, storetest.Grant("invoice-export", 1)))
	// Output:
	// faultstore: append "invoice-export", seq 1: connection refused (injected fault)
	// <nil>
}

// A run with random faults can be repeated from its seed.
func ExampleRandom() {
	ctx := context.Background()
	run := func(seed uint64) string {
		var outcomes []error
		ledger := faultstore.New(memory.New(memory.Options{}), faultstore.Options{
			Caller: "worker-1",
			Plan:   faultstore.Random(seed, faultstore.Rates{Failure: 0.2, LostReply: 0.2, OwnConflict: 0.2}),
		})
		defer func() { _ = ledger.Close(ctx) }()
		for seq := range int64(30) {
			outcomes = append(outcomes, ledger.Append(ctx, storetest.Grant("invoice-export", seq+1)))
		}
		return fmt.Sprint(outcomes)
	}
	first, again, other := run(1), run(1), run(2)
	fmt.Println(again == first, other == first)
	// Output: true false
}

// A counter shows how many operations something needs.
func ExampleCounter() {
	ctx := context.Background()
	counter := faultstore.NewCounter(memory.New(memory.Options{}))
	for seq := range int64(3) {
		_ = counter.Append(ctx, storetest.Grant("invoice-export", seq+1))
	}
	_, _, _ = counter.Tail(ctx, "invoice-export", 1)
	fmt.Println(counter.Counts())
	// Output: map[append:3 tail:1]
}
