package store_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// After an append that didn't return nil, reading the key shows whose record it has.
func Example() {
	ctx := context.Background()
	var ledger store.Ledger = memory.New(memory.Options{})

	start := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	mine := store.Record{
		WorkerType: "invoice-export", Seq: 1, Kind: store.KindGrant,
		InstanceID: "host-1", Claim: "6f1ed002ab5595859014ebf0951522d9",
		WindowStart: start, WindowEnd: start.Add(5 * time.Minute), Token: start.UnixMilli(),
	}
	fmt.Println(ledger.Append(ctx, mine))

	// A driver that lost the reply tries again.
	err := ledger.Append(ctx, mine)
	fmt.Println(errors.Is(err, store.ErrConflict))
	found, err := ledger.Get(ctx, "invoice-export", 1)
	fmt.Println(found.Claim == mine.Claim, err)
	// Output:
	// <nil>
	// true
	// true <nil>
}

func ExampleCheckWorkerType() {
	fmt.Println(store.CheckWorkerType("invoice-export"))
	fmt.Println(store.CheckWorkerType("invoice/export"))
	// Output:
	// <nil>
	// invalid record: worker type "invoice/export": character '/' at position 8: use 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or digit
}

func ExampleKey() {
	fmt.Println(store.Key("invoice-export", 42))
	// Output: invoice-export:00000000000000000042
}
