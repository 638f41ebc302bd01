package move_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/move"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// prefer gives an order that a worker goes first for so long.
func prefer(t *testing.T, l store.Ledger, target string, lasts time.Duration) {
	t.Helper()
	_, err := operate.On(l).Give(t.Context(), operate.Order{Kind: store.OrderPrefer, WorkerType: "mail", Target: target, For: lasts})
	must(t, err)
}

func drain(t *testing.T, l store.Ledger, host string, lasts time.Duration) {
	t.Helper()
	_, err := operate.On(l).Give(t.Context(), operate.Order{Kind: store.OrderDrain, WorkerType: "mail", Target: host, For: lasts})
	must(t, err)
}

// ordersIn are the orders in force in the newest record of a ledger, but for pauses.
func ordersIn(t *testing.T, l store.Ledger) (all []string) {
	t.Helper()
	records, stamp, err := l.Tail(t.Context(), "mail", 1)
	must(t, err)
	for _, r := range records {
		for _, o := range r.OrdersAt(stamp.Time) {
			if o.Kind != store.OrderPause {
				all = append(all, string(o.Kind)+" "+o.Target)
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestAMoveLosesNoOrderOfTheSecondStore(t *testing.T) {
	for _, c := range []struct {
		name     string
		give     func(t *testing.T, from, to store.Ledger)
		lost     string // the order for which it is refused; empty: it is moved
		from, to []string
	}{
		{"a preference there", func(t *testing.T, _, to store.Ledger) {
			t.Helper()
			prefer(t, to, "new-1", time.Hour)
		}, "prefers new-1", nil, []string{"prefer new-1"}},
		{"a preference there, from before the slot", func(t *testing.T, _, to store.Ledger) {
			t.Helper()
			prefer(t, to, "new-1", time.Hour)
			time.Sleep(2 * time.Minute)
		}, "prefers new-1", nil, []string{"prefer new-1"}},
		{"a drain there, and another order here", func(t *testing.T, from, to store.Ledger) {
			t.Helper()
			drain(t, to, "web-1", time.Hour)
			prefer(t, from, "new-1", time.Hour)
		}, "drains host web-1", []string{"prefer new-1"}, []string{"drain web-1"}},
		{"one that lasts longer there", func(t *testing.T, from, to store.Ledger) {
			t.Helper()
			prefer(t, from, "new-1", time.Hour)
			prefer(t, to, "new-1", 2*time.Hour)
		}, "prefers new-1", []string{"prefer new-1"}, []string{"prefer new-1"}},
		{"the same on both, and more here", func(t *testing.T, from, to store.Ledger) {
			t.Helper()
			drain(t, to, "web-1", time.Hour)
			drain(t, from, "web-1", 2*time.Hour)
			time.Sleep(2 * time.Minute) // Then the first store's token is the larger one.
			prefer(t, from, "new-1", time.Hour)
		}, "", []string{"drain web-1", "prefer new-1"}, []string{"drain web-1", "prefer new-1"}},
		{"one that has ended there", func(t *testing.T, _, to store.Ledger) {
			t.Helper()
			prefer(t, to, "new-1", time.Minute)
			time.Sleep(2 * time.Minute)
		}, "", nil, nil},
	} {
		bubble(t, c.name, func(t *testing.T) {
			_, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute)
			c.give(t, from, to)
			time.Sleep(time.Second)
			_, err := move.Move(t.Context(), from, to, mail)
			if refused := errors.Is(err, move.ErrOrders) && strings.Contains(err.Error(), c.lost); refused != (c.lost != "") || !refused && err != nil {
				t.Errorf("Move() = %v, want it refused for %q", err, c.lost)
			}
			if paused := pauseIn(t, from) != ""; paused != (c.lost == "") {
				t.Errorf("the first store is paused: %v, want that only after a move", paused)
			}
			for _, of := range []struct {
				name string
				l    store.Ledger
				want []string
			}{{"first", from, c.from}, {"second", to, c.to}} {
				if got := ordersIn(t, of.l); !slices.Equal(got, of.want) {
					t.Errorf("the %s store has the orders %q, want %q", of.name, got, of.want)
				}
			}
		})
	}
}

// A preference that came along, and was ended on the second store, is still in force by the newest record of the first.
func TestATypeIsMovedBackThoughAnOrderThatCameAlongWasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, from, to := leased(t, 1, workerlease.Options{}, 2*time.Minute)
		prefer(t, from, "new-1", 24*time.Hour)
		moves(t, from, to, mail)
		if got := ordersIn(t, to); len(got) != 1 {
			t.Errorf("the second store has the orders %q, want that of the first", got)
		}
		if _, err := operate.On(to).End(t.Context(), operate.Order{WorkerType: "mail", Kind: store.OrderPrefer}); err != nil {
			t.Fatal(err)
		}
		if _, err := move.Move(t.Context(), to, from, mail); err != nil {
			t.Errorf("Move() back = %v, want nil", err)
		}
		if got := ordersIn(t, from); len(got) != 0 {
			t.Errorf("the first store has the orders %q, want none", got)
		}
	})
}

const oldVersion = "v0.0.1"

// tooOld is a ledger as a worker sees and writes it that is too old to know orders.
type tooOld struct{ store.Ledger }

func (l *tooOld) Append(ctx context.Context, r store.Record) error {
	r.Worker.Version = oldVersion
	return l.Ledger.Append(ctx, r)
}

func (l *tooOld) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	r, err := l.Ledger.Get(ctx, workerType, seq)
	r.Orders = ""
	return r, err
}

func (l *tooOld) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := l.Ledger.Tail(ctx, workerType, limit)
	for i := range records {
		records[i].Orders = ""
	}
	return records, stamp, err
}

// A worker that is too old to know orders obeys no pause: it is named before anything is paused, and what it appends in spite of the
// pause isn't passed over.
func TestAWorkerThatIsTooOldForAPauseIsNamed(t *testing.T) {
	for _, c := range []struct {
		where string
		wait  time.Duration // from the first claim to the move
		want  error
	}{
		{"the first store", 3*time.Minute + 40*time.Second, move.ErrGivenUp},
		{"the second store", time.Minute, move.ErrUsed},
	} {
		bubble(t, c.where, func(t *testing.T) {
			from, to := memory.New(memory.Options{}), memory.New(memory.Options{})
			var f fleet
			prefer(t, from, "a", time.Hour)
			o := mail
			named := ""
			o.Told = func(p move.Progress) {
				if named += strings.Join(p.Others, "; "); p.Step == move.StepWait && c.where == "the second store" {
					f.start(t, "old", &tooOld{to.Handle()}, 1, workerlease.Options{})
					time.Sleep(90 * time.Second)
				}
			}
			if c.where == "the first store" {
				f.start(t, "old", &tooOld{from.Handle()}, 1, workerlease.Options{})
			} else {
				f.start(t, "a", from.Handle(), 1, workerlease.Options{})
			}
			time.Sleep(c.wait)
			_, err := move.Move(t.Context(), from, to, o)
			if !errors.Is(err, c.want) || !strings.Contains(named+err.Error(), `"old0"`) || !strings.Contains(named+err.Error(), oldVersion) {
				t.Errorf("Move() with such a worker on %s = %v, named: %s; want %v, and the worker's name", c.where, err, named, c.want)
			}
			if c.where == "the first store" && !strings.Contains(named, "with the first store") {
				t.Errorf("before the pause, these are named: %q, want the worker", named)
			}
		})
	}
}
