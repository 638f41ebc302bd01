package operate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// Something has claimed a year. An operator sees who may still work, makes sure that nobody
// does, and ends it.
func ExampleDesk_Override() {
	ctx := context.Background()
	ledger := memory.New(memory.Options{})
	now := time.Now().Truncate(time.Millisecond)
	ledger.Put(store.Record{
		WorkerType: "report", Seq: 1, Kind: store.KindGrant, InstanceID: "ben", Claim: "0123", Token: now.UnixMilli(),
		WindowStart: now, WindowEnd: now.Add(365 * 24 * time.Hour),
	})

	o := operate.OverrideOptions{WorkerType: "report", Seq: 1, InstanceID: "anna", Reason: "its host is gone"}
	plan, err := operate.On(ledger).PlanOverride(ctx, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range plan.Terms {
		fmt.Printf("if %s still works, two work for %v at most\n", r.InstanceID, r.WindowEnd.Sub(r.WindowStart))
	}
	r, err := operate.On(ledger).Override(ctx, o)
	fmt.Println(r.Seq, r.Kind, r.InstanceID, r.Metadata, err)
	// Output:
	// if ben still works, two work for 8760h0m0s at most
	// 2 override anna its host is gone <nil>
}
