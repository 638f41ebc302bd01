package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
)

// Whoever may append can append thousands of resets that stood too far ahead for their writers. What they end is found by looking at
// each record a few times. Once it took the square of that, and all that a store on SQLite looks at when its clock is set the cube: 3 s
// for 400 of them.
func TestManyForeignResetsCostLittle(t *testing.T) {
	const n = 400
	records := make([]store.Record, n)
	for i := range records {
		records[i] = store.Record{
			WorkerType: "job", Seq: int64(n - i + 100), Kind: store.KindReset, InstanceID: "x", Claim: fmt.Sprint("c", i),
			Token: noon.Add(-3*time.Hour).UnixMilli() + int64(n-i), WindowStart: noon, WindowEnd: noon, ReadAt: noon.Add(-time.Hour),
		}
	}
	base := store.Record{
		WorkerType: "job", Seq: 100, Kind: store.KindGrant, InstanceID: "x", Claim: "base",
		Token: noon.Add(-20 * time.Hour).UnixMilli(), WindowStart: noon.Add(-20 * time.Hour), WindowEnd: noon.Add(-19 * time.Hour),
	}
	looks, rules := 0, ledger.Standard
	rules.Poison = func(r store.Record, latest time.Time, ahead, longest time.Duration) error {
		looks++
		return ledger.Standard.Poison(r, latest, ahead, longest)
	}
	if why := (ledger.Reader{Rules: &rules, Latest: noon}).Defect(append(records, base)); why != nil || looks > 10*n {
		t.Errorf("whether the newest of %d resets can be obeyed took %d looks, want %d or fewer: %v", n, looks, 10*n, why)
	}
}
