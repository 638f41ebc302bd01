package workerlease_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Two jobs share a worker type by mistake: one of them is never done. Whoever says what it does hears of that, once.
func TestWorkersThatDoSomethingElseAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		ours, theirs string
		told         int
	}{
		"they say different things": {"backup.sh 34cd", "bill.sh 12ab", 1},
		"they say the same":         {"bill.sh 12ab", "bill.sh 12ab", 0},
		"one says nothing":          {"backup.sh 34cd", "", 0},
		"the other says nothing":    {"", "bill.sh 12ab", 0},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			j := &job{each: time.Second}
			theirs, ours := perSlot("theirs", 0), perSlot("ours", 1)
			theirs.Work, ours.Work = c.theirs, c.ours
			runs(t, ledger.Handle(), theirs, j.run)
			b := runs(t, ledger.Handle(), ours, j.run)
			at(21 * time.Minute)
			told := observed[event.WorkMismatch](b.worker)
			if len(told) != c.told {
				t.Fatalf("WorkMismatch = %+v, want %d", told, c.told)
			}
			for _, e := range told {
				if e.Ours != c.ours || e.Theirs != c.theirs || e.Holder != "theirs" || !strings.Contains(e.Text(), "for another command") {
					t.Errorf("WorkMismatch = %+v: %s", e, e.Text())
				}
			}
		})
	}
	bubble(t, "who claims at once hears who has it, and for what", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		theirs := perSlot("theirs", 0)
		theirs.Work = "bill.sh 12ab"
		claimed(t, ledger.Handle(), theirs)
		_, err := attempt(t, ledger.Handle(), perSlot("ours", 0))
		if n, ok := errors.AsType[*workerlease.NotClaimed](err); !ok || n.Why != workerlease.HeldByAnother || n.Work != theirs.Work {
			t.Errorf("TryClaim = %+v, want that it is held for %q", n, theirs.Work)
		}
	})
	bubble(t, "a version before a deployment isn't there any more", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		o := slotted("a", 0, time.Minute, 0)
		o.Work = "bill.sh 12ab"
		old := start(t, setup{Options: o, ledger: ledger.Handle()})
		at(10*time.Minute + 20*time.Second)
		old.stop(t)
		at(10*time.Minute + 25*time.Second)
		o.Work = "bill.sh 34cd"
		w := start(t, setup{Options: o, ledger: ledger.Handle()})
		at(20 * time.Minute)
		if told := observed[event.WorkMismatch](w); len(told) > 0 {
			t.Errorf("WorkMismatch = %+v, want none", told)
		}
	})
	bubble(t, "of three, each hears of the others once", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var all []*worker
		for _, n := range []string{"a", "b", "c"} {
			o := slotted(n, 0, time.Minute, 0)
			o.Work, o.TieBreak = "work "+n, priority.Rotate
			all = append(all, start(t, setup{Options: o, ledger: ledger.Handle()}))
		}
		at(time.Hour + 30*time.Second)
		for _, w := range all {
			if n := len(observed[event.WorkMismatch](w)); n != 2 {
				t.Errorf("%d WorkMismatch events, want 2", n)
			}
		}
	})
}
