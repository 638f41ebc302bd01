package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

func Example() {
	ctx := context.Background()
	mock := clock.NewMock()
	mock.Set(time.Date(2026, time.March, 2, 11, 59, 55, 0, time.UTC))
	ledger := memory.New(memory.Options{Clock: mock})

	start := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	err := ledger.Append(ctx, store.Record{
		WorkerType: "invoice-export", Seq: 1, Kind: store.KindGrant,
		InstanceID: "host-1", Claim: "6f1ed002ab5595859014ebf0951522d9",
		WindowStart: start, WindowEnd: start.Add(5 * time.Minute), Token: start.UnixMilli(),
	})
	fmt.Println(err)

	mock.Add(5 * time.Second)
	records, stamp, err := ledger.Tail(ctx, "invoice-export", 1)
	fmt.Println(records[0].InstanceID, store.Format(stamp.Time), err)
	// Output:
	// <nil>
	// host-1 2026-03-02T12:00:00.000Z <nil>
}
