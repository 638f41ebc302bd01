package move_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/move"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// What was copied above the records that a store had of before follows none of those.
func TestALedgerThatATypeWasMovedBackToIsSound(t *testing.T) {
	for name, o := range map[string]workerlease.Options{
		"leases":   {},
		"failover": {FailoverWithin: 20 * time.Second},
		"a job":    {Job: &workerlease.Job{CatchUp: workerlease.CatchUpNewest}},
		"a group":  {Group: "east"},
	} {
		for _, ahead := range []time.Duration{-50 * time.Second, 0, 50 * time.Second} {
			for _, history := range []int{0, 16} {
				bubble(t, fmt.Sprintf("%s, clocks %v apart, history %d", name, ahead, history), func(t *testing.T) {
					from, to := memory.New(memory.Options{}), memory.New(memory.Options{Clock: clocks.Skewed(clock.New(), ahead)})
					var f fleet
					f.start(t, "old", from.Handle(), 2, o)
					time.Sleep(40*time.Minute + 10*time.Second)
					m := mail
					m.History = history
					moves(t, from, to, m)
					f.start(t, "new", to.Handle(), 2, o)
					time.Sleep(5 * time.Minute)
					moves(t, to, from, m)
					time.Sleep(5 * time.Minute)
					for store, l := range map[string]*memory.Ledger{"first": from, "second": to} {
						for _, found := range findings(t, l) {
							t.Errorf("the %s ledger: %+v, want no finding", store, found)
						}
					}
				})
			}
		}
	}
}

// findings are those of verify in a ledger, but for notes, and slots that nobody claimed.
func findings(t *testing.T, l store.Ledger) (all []verify.Finding) {
	t.Helper()
	stamp, err := l.Now(t.Context())
	must(t, err)
	records, err := l.(store.Pager).Page(t.Context(), "mail", 0, store.MaxPage)
	must(t, err)
	v := verify.New(verify.Options{WorkerType: "mail", Now: stamp.Time})
	for _, r := range records {
		v.Add(r)
	}
	for _, found := range v.Report().Findings {
		if found.Severity != verify.Note && found.Code != verify.MissedSlots {
			all = append(all, found)
		}
	}
	return all
}

// A second store that loses what was copied, when it is emptied or an older copy of it takes over, would let its workers begin
// without what is done, and with old tokens.
func TestAMoveOntoAStoreThatForgetsIsNoSuccess(t *testing.T) {
	for _, c := range []struct {
		kept  int       // records of the second store, oldest first
		at    move.Step // when it loses the others
		again error     // of the move, repeated
	}{
		{0, move.StepWait, nil},
		{1, move.StepWait, nil},
		{0, move.StepResume, move.ErrMoved}, // Nothing there shows that it was this one.
		{1, move.StepResume, nil},
	} {
		bubble(t, fmt.Sprintf("all but %d records, before %s", c.kept, c.at), func(t *testing.T) {
			f, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute+10*time.Second)
			o, forgot := mail, false
			o.Told = func(p move.Progress) {
				if p.Step != c.at || forgot {
					return
				}
				forgot = true
				all, _, err := to.Tail(t.Context(), "mail", 100)
				if err != nil || len(all) <= c.kept {
					t.Fatalf("the second store has %d records, %v", len(all), err)
				}
				to.Lose("mail", len(all)-c.kept)
			}
			if _, err := move.Move(t.Context(), from, to, o); !errors.Is(err, move.ErrLost) {
				t.Errorf("Move() onto a store that forgot = %v, want ErrLost", err)
			}
			if _, err := move.Move(t.Context(), from, to, mail); !errors.Is(err, c.again) {
				t.Errorf("Move(), once more = %v, want %v", err, c.again)
			}
			if c.again != nil {
				return
			}
			f.start(t, "new", to.Handle(), 1, workerlease.Options{})
			time.Sleep(3 * time.Minute)
			f.check(t, 3)
			wantMoved(t, from, to)
		})
	}
}

// All orders that are given on the second store in mid-move come along, and not only the first of them, and also if the newest
// record isn't copied yet.
func TestSeveralOrdersOnTheSecondStoreInMidMoveComeAlong(t *testing.T) {
	for _, at := range []move.Step{move.StepCopy, move.StepWait} {
		bubble(t, "before "+string(at), func(t *testing.T) {
			from, to := memory.New(memory.Options{}), memory.New(memory.Options{})
			var f fleet // Its holder appends on the first store meanwhile.
			f.start(t, "old", from.Handle(), 1, workerlease.Options{FailoverWithin: 20 * time.Second})
			time.Sleep(2*time.Minute + 2*time.Second)
			o, given := mail, false
			o.Told = func(p move.Progress) {
				if p.Step == at && !given {
					given = true
					prefer(t, to, "new0", time.Hour)
					drain(t, to, "web-1", time.Hour)
					drain(t, to, "web-2", time.Second) // It ends before it is brought.
					time.Sleep(2 * time.Second)
				}
			}
			_, err := move.Move(t.Context(), from, to, o)
			if want := []string{"drain web-1", "prefer new0"}; err != nil || !slices.Equal(ordersIn(t, to), want) {
				t.Errorf("Move() = %v, with the orders %q on the second store, want nil and %q", err, ordersIn(t, to), want)
			}
		})
	}
}
