package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

// Two processes on one machine open the same file; a key can be taken once.
func Example() {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	ledger, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "leases.db")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ledger.Close(ctx) }()

	start := time.Date(2026, time.March, 2, 12, 5, 0, 0, time.UTC)
	grant := store.Record{
		WorkerType: "invoice-export", Seq: 1, Kind: store.KindGrant,
		InstanceID: "worker-a", Claim: "8c5f2d9e0b7a46c1a3e4f59d60718293",
		WindowStart: start, WindowEnd: start.Add(5 * time.Minute), Token: start.UnixMilli(),
	}
	fmt.Println("first:", ledger.Append(ctx, grant))
	fmt.Println("again:", errors.Is(ledger.Append(ctx, grant), store.ErrConflict))
	newest, _, err := ledger.Tail(ctx, "invoice-export", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("head:", newest[0].InstanceID, store.Format(newest[0].WindowStart))
	// Output:
	// first: <nil>
	// again: true
	// head: worker-a 2026-03-02T12:05:00.000Z
}
