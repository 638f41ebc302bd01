package workerlease_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
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
			for _, e := range observed[workerlease.Claimed](w) {
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
