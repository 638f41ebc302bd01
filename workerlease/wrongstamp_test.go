package workerlease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// misstamped is a ledger of which one Tail has a wrong stamp: that which is asked for first when a reading of the
// bubble's clock has come.
type misstamped struct {
	store.Ledger

	from, by time.Duration
	struck   bool
}

func (l *misstamped) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := l.Ledger.Tail(ctx, workerType, limit)
	if !l.struck && time.Since(t0) >= l.from {
		l.struck, stamp.Time = true, stamp.Time.Add(l.by)
	}
	return records, stamp, err
}

// The look that shows that another worker has the slot turns the bid to the next one, by a time whose middle is
// far ahead until more samples have come.
func TestAWrongStampAsTheSlotIsLostBenchesNobody(t *testing.T) {
	for _, by := range []time.Duration{7 * time.Minute, 90 * time.Minute, -90 * time.Minute, 26 * time.Hour, 30 * 365 * 24 * time.Hour} {
		bubble(t, fmt.Sprint(by), func(t *testing.T) {
			m := memory.New(memory.Options{})
			favourite := start(t, setup{ledger: m, Options: workerlease.Options{InstanceID: "favourite"}})
			other := start(t, setup{ledger: &misstamped{Ledger: m.Handle(), from: 9 * time.Minute, by: by}, Options: workerlease.Options{InstanceID: "other", Priority: 1}})
			at(12 * time.Minute)
			if e := observed[workerlease.ClockJump](other); len(e) != 2 || e[1].Verdict != workerlease.AnswerDropped {
				t.Fatalf("ClockJump events = %+v, want one in question, and that the answer was wrong", e)
			}
			favourite.stop(t)
			at(26 * time.Minute)
			equal(t, "slots of the other", other.starts(), minutes(15, 20, 25)...)
		})
	}
}

// What it has won by a clock that is gone lies a day ahead by the one that is wrong, and it waits for that.
func TestAWrongClockThatIsPutRightKeepsNobodyFromContending(t *testing.T) {
	for _, by := range []time.Duration{-26 * time.Hour, -3 * time.Hour, -40 * time.Minute, 40 * time.Minute, 26 * time.Hour} {
		for _, workers := range []int{1, 3} {
			bubble(t, fmt.Sprintf("%v, %d workers", by, workers), func(t *testing.T) {
				ledger := faulty(t, nil)
				var all []*worker
				for i := range workers {
					all = append(all, start(t, setup{ledger: ledger, Options: workerlease.Options{InstanceID: fmt.Sprint("w", i)}}))
				}
				at(31 * time.Minute)
				ledger.Shift(by, "")
				at(42 * time.Minute)
				ledger.Shift(0, "")
				at(2 * time.Hour)
				last := time.Duration(0)
				for _, w := range all {
					for _, u := range w.history() {
						last = max(last, u.allocated)
					}
				}
				if last < 2*time.Hour-10*time.Minute {
					t.Errorf("the last lease began at %v, want one of the newest slots", last)
				}
				for _, w := range all {
					if s := w.Status(); s.SampleAge > 10*time.Minute {
						t.Errorf("%s: the newest sample is %v old, want that it looks at each slot", w.Status().InstanceID, s.SampleAge)
					}
				}
			})
		}
	}
}
