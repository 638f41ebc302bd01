package move_test

import (
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
)

// prefer gives an order that a worker goes first for so long.
func prefer(t *testing.T, l store.Ledger, target string, lasts time.Duration) {
	t.Helper()
	if _, err := workerlease.Prefer(t.Context(), l, workerlease.PreferOptions{WorkerType: "mail", Target: target, For: lasts}); err != nil {
		t.Fatal(err)
	}
}

func drain(t *testing.T, l store.Ledger, host string, lasts time.Duration) {
	t.Helper()
	if _, err := workerlease.Drain(t.Context(), l, workerlease.DrainOptions{WorkerType: "mail", Host: host, For: lasts}); err != nil {
		t.Fatal(err)
	}
}

// ordersIn are the orders in force in the newest record of a ledger, but for pauses.
func ordersIn(t *testing.T, l store.Ledger) (all []string) {
	t.Helper()
	records, stamp, err := l.Tail(t.Context(), "mail", 1)
	if err != nil {
		t.Fatal(err)
	}
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
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from, to := memory.New(memory.Options{}), memory.New(memory.Options{})
				var f fleet
				f.start(t, "old", from.Handle(), 1, workerlease.Options{})
				time.Sleep(2 * time.Minute)
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
		})
	}
}

// A preference that came along, and was ended on the second store, is still in force by the newest record of the first.
func TestATypeIsMovedBackThoughAnOrderThatCameAlongWasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := memory.New(memory.Options{}), memory.New(memory.Options{})
		var f fleet
		f.start(t, "old", from.Handle(), 1, workerlease.Options{})
		time.Sleep(2 * time.Minute)
		prefer(t, from, "new-1", 24*time.Hour)
		if _, err := move.Move(t.Context(), from, to, mail); err != nil {
			t.Fatal(err)
		}
		if got := ordersIn(t, to); len(got) != 1 {
			t.Errorf("the second store has the orders %q, want that of the first", got)
		}
		if _, err := workerlease.Resume(t.Context(), to, workerlease.ResumeOptions{WorkerType: "mail", Kind: store.OrderPrefer}); err != nil {
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
