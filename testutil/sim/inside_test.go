package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/slotlease/slotlease/internal/fuzzed" // properties draw from the seed of the run
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

func TestAllBadOptionsAreReportedAtOnce(t *testing.T) {
	err := Options{
		Workers: -1, Length: -time.Hour,
		Faults: Faults{Skew: -time.Second, Failed: 2, Stale: 0.5, Drift: 0.9, Unasked: 2},
	}.check()
	for _, want := range []string{"Workers is -1", "Length is -1h", "Faults.Skew is -1s", "Faults.Failed is 2", "Faults.Drift is 0.9", "2.50 for reads", "Faults.Unasked is 2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check() = %v, want %q in it", err, want)
		}
	}
	if err := (Options{}).check(); err != nil {
		t.Errorf("check() of nothing = %v", err)
	}
	for seed := range int64(1000) {
		for _, o := range []Options{Random(seed), RandomBeyond(seed)} {
			if err := o.check(); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
}

// The world's records behave as those of a real store.
func TestRecordsDoWhatTheMemoryStoreDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ledger, ctx := memory.New(memory.Options{}), context.Background()
		var kept records
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		n := rapid.IntRange(1, 40).Draw(t, "operations")
		for range n {
			seq := rapid.Int64Range(1, 30).Draw(t, "seq")
			switch rapid.SampledFrom([]string{"append", "append", "append", "get", "tail", "trim"}).Draw(t, "operation") {
			case "append":
				r := store.Record{
					WorkerType: "w", Seq: seq, Kind: store.KindGrant, Claim: rapid.StringMatching("[a-z]{8}").Draw(t, "claim"),
					InstanceID: "i", Token: 1, WindowStart: start, WindowEnd: start.Add(time.Second),
				}
				conflict := errors.Is(ledger.Append(ctx, r), store.ErrConflict)
				if inserted := kept.insert(r.Truncated()); inserted == conflict {
					t.Fatalf("insert(%d) = %v, and the store says conflict: %v", seq, inserted, conflict)
				}
			case "get":
				want, err := ledger.Get(ctx, "w", seq)
				got, ok := kept.get(seq)
				if ok != (err == nil) || ok && !cmp.Equal(got, want) {
					t.Fatalf("get(%d) = %v, %v, want %v, %v", seq, got, ok, want, err)
				}
			case "tail":
				limit := int(seq % 5)
				want, _, err := ledger.Tail(ctx, "w", limit)
				if got := kept.tail(limit, 0); err != nil || len(got) != len(want) || len(got) > 0 && !cmp.Equal(got, want) {
					t.Fatalf("tail(%d) = %v, want %v", limit, got, want)
				}
			case "trim":
				want, err := ledger.Trim(ctx, "w", seq)
				if got := kept.trim(seq); err != nil || got != want {
					t.Fatalf("trim(%d) = %d, want %d, %v", seq, got, want, err)
				}
			}
		}
	})
}
