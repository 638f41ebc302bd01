package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// Only what a worker says of the very slot is shown for it.
func TestAMissedSlotShowsWhyIfAWorkerSaysSo(t *testing.T) {
	l := recorded(16)
	l.Put(recordtest.Grant(1, 0, "worker-a"))
	said := func(id, why string, from, until float64) store.Presence {
		return store.Presence{
			WorkerType: "export", ID: id, InstanceID: "worker-" + id, Phase: store.PhaseCandidate, Since: recordtest.Noon, Seen: recordtest.Minutes(15), Next: recordtest.Minutes(20),
			Missed: why, MissedFrom: recordtest.Minutes(from), MissedUntil: recordtest.Minutes(until),
		}
	}
	old := said("d", "nobody had it: too late", 5, 10)
	old.MissedFrom, old.MissedUntil = time.Time{}, time.Time{}
	err := l.Attend(t.Context(), []store.Presence{
		said("a", "nobody had it: store unreachable", 5, 10), said("b", "nobody had it: overrun\x1b[2J", 10, 15), said("c", "worker-a has it, with priority 0", 5, 10), old,
	})
	must(t, err)
	s := decoded(t, l, 9)
	if len(s.Slots) != 4 || len(s.Slots[0].Missing)+len(s.Slots[3].Missing) != 0 || len(s.Slots[1].Missing) != 1 || len(s.Slots[2].Missing) != 1 {
		t.Fatalf("inspect slots = %+v, want one reason for each of the two missed slots", s.Slots)
	}
	if got := s.Slots[1].Missing[0]; got != (Missing{"worker-a", "store unreachable"}) {
		t.Errorf("the slot at 12:05 was missed by %+v", got)
	}
	got, err := shown(t, l, Options{Last: 9, Timeout: time.Minute})
	if err != nil || !strings.Contains(got, "missed  worker-a: store unreachable\n") || strings.Contains(got, "too late") || strings.Contains(got, "\x1b") {
		t.Errorf("inspect slots = %s, %v", got, err)
	}
}
