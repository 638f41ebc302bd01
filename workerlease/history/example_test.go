package history_test

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease/history"
)

// A report of the newest slots of a worker type, from any ledger.
func ExampleRead() {
	ctx := context.Background()
	clock := clocks.NewFake(recordtest.Minutes(12))
	ledger := memory.New(memory.Options{Clock: clock})
	first, second := recordtest.Grant(1, 0, "worker-a"), recordtest.Grant(2, 1, "worker-b")
	ledger.Put(first)
	ledger.Put(second)
	ledger.Put(recordtest.Release(second, 3, recordtest.Minutes(6)))

	records, stamp, err := ledger.Tail(ctx, "export", 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range history.Read(records, stamp.Time, nil) {
		fmt.Println(e.Slot.Start.Format(time.TimeOnly), cmp.Or(e.Record.InstanceID, "-"), e.State, cmp.Or(e.Note(), "-"))
	}
	// Output:
	// 12:00:00 worker-a expired -
	// 12:05:00 worker-b released at +1m0s
	// 12:10:00 - free -
}
