package store_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/store"
)

func TestADoneSlotComesBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(-1<<45, 1<<45).Draw(t, "start")
		want := store.Done{
			Start: store.FromMillis(start), End: store.FromMillis(start + rapid.Int64Range(1, 1<<35).Draw(t, "length")),
			Zone: rapid.StringMatching(`[A-Z][A-Za-z0-9_+/-]{0,60}`).Draw(t, "zone"), Offset: time.Duration(rapid.Int64Range(-100_000, 100_000).Draw(t, "offset")) * time.Second,
		}
		if got, err := store.ParseDone(want.String()); err != nil || got != want {
			t.Errorf("ParseDone(%s) = %+v, %v, want %+v", want, got, err, want)
		}
	})
	if got, err := store.ParseDone(store.Done{}.String()); err != nil || !got.IsZero() {
		t.Errorf("ParseDone of the zero Done = %+v, %v, want it back", got, err)
	}
}
