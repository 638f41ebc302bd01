package inspect

import (
	"testing"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Slots that nobody had in a pause, those that are over and the one that has begun, say so; the one before it doesn't.
func TestSlotsOfAPauseNameIt(t *testing.T) {
	held := recordtest.Grant(1, 7, "worker-a") // from 12:35 to 12:40
	paused := held
	paused.Seq, paused.Kind, paused.FixedAt = 2, store.KindOrder, recordtest.Minutes(36)
	paused.Orders, _ = store.FormatOrders([]store.Order{{Kind: store.OrderPause, At: paused.FixedAt, Until: recordtest.Minutes(60), By: "ann"}})
	records := []store.Record{paused, held}
	var got []Recent
	for _, r := range recentOf(records, recordtest.Minutes(47), 3) {
		got = append(got, Recent{State: r.State, Order: r.Order})
	}
	want := []Recent{{State: history.Expired}, {State: history.Missed, Order: store.OrderPause}, {State: history.Free, Order: store.OrderPause}}
	if len(got) != len(want) {
		t.Fatalf("the slots are %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("slot %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}
