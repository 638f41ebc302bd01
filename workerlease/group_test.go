package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/operate"
)

func inGroup(name, group string, priority int) workerlease.Options {
	return workerlease.Options{InstanceID: name, Group: group, Priority: priority}
}

func TestAllOfAGroupAreAllocatedWithOneToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var east, west []*worker
		for i := range 3 {
			east = append(east, start(t, setup{ledger: ledger, Options: inGroup(fmt.Sprint("e", i), "east", 0)}))
			west = append(west, start(t, setup{ledger: ledger, Options: inGroup(fmt.Sprint("w", i), "west", 1)}))
		}
		at(16 * time.Minute)
		joined := 0
		for _, w := range east {
			equal(t, "slots of east", w.starts(), minutes(5, 10, 15)...)
			for i, u := range w.history() {
				if first := east[0].turn(t, i); u.lease.Token != first.lease.Token || u.lease.Group != "east" {
					t.Errorf("lease %d: token %d of group %q, want %d of east", i, u.lease.Token, u.lease.Group, first.lease.Token)
				}
				if late := u.allocated - since(u.lease.Slot.Start); late > 15*time.Millisecond {
					t.Errorf("allocated %v after the boundary", late)
				}
			}
			for _, e := range observed[event.Claimed](w) {
				if e.Joined {
					joined++
				}
			}
		}
		if joined != 6 {
			t.Errorf("%d slots were joined, want 2 members × 3 slots", joined)
		}
		for _, w := range west {
			equal(t, "slots of west", w.starts())
		}
		if n := len(records(t, ledger)); n != 3 {
			t.Errorf("%d records, want one for each slot", n)
		}
	})
}

// However many members of a group say that their work has failed, another one finds its grant below that.
func TestAGroupJoinsWhateverIsSaidOfItsLease(t *testing.T) {
	for _, members := range []int{5, 40} {
		synctest.Test(t, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			member := func(name string, work func(context.Context, workerlease.Lease)) *worker {
				o := named(name, 0)
				o.Group, o.LeaseInterval = "eu", time.Hour
				return start(t, setup{Options: o, ledger: ledger.Handle(), work: work, plain: true})
			}
			for i := range members {
				member(fmt.Sprint("m", i), func(ctx context.Context, l workerlease.Lease) {
					l.FailedWith(errors.New("no"))
					<-ctx.Done()
				})
			}
			at(80 * time.Minute)
			late := member("late", nil)
			at(81 * time.Minute)
			if n := len(late.history()); n != 1 || since(late.turn(t, 0).lease.Slot.Start) != time.Hour {
				t.Errorf("%d members: one that started in mid-slot has joined %d leases", members, n)
			}
		})
	}
}

// Members of a group join its lease, although an order stands above the grant.
func TestAGroupJoinsUnderAnOrder(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := memory.New(memory.Options{})
		member := func(name string) *worker {
			o := named(name, 0)
			o.Group = "eu"
			return start(t, setup{Options: o, ledger: l.Handle()})
		}
		a := member("a")
		at(6 * time.Minute)
		pause(t, l.Handle(), 20*time.Minute, false)
		b := member("b")
		at(7 * time.Minute)
		if len(a.history()) != 1 || len(b.history()) != 1 || b.turn(t, 0).lease.Token != a.turn(t, 0).lease.Token {
			t.Errorf("a had %d leases and b %d, want one that they share", len(a.history()), len(b.history()))
		}
		if _, err := operate.On(l.Handle()).Give(t.Context(), operate.Order{Kind: store.OrderRelease, WorkerType: "job"}); !errors.Is(err, operate.ErrNoTerm) {
			t.Errorf("AskRelease() of a group's lease = %v, want ErrNoTerm", err)
		}
		at(11 * time.Minute)
		if a.Status().Holding || b.Status().Holding || a.turn(t, 0).ended == 0 {
			t.Error("the group holds the lease in a pause")
		}
	})
}
