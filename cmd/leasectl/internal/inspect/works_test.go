package inspect

import (
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// Two commands have one worker type by mistake: status and why say so, and of one command on two machines nothing.
func TestTwoCommandsUnderOneWorkerTypeAreTold(t *testing.T) {
	for _, c := range []struct {
		theirs string
		gone   bool // the one that had the lease
		told   bool
	}{{theirs: "backup 34cd", told: true}, {theirs: "bill 12ab"}, {}, {theirs: "backup 34cd", gone: true}} {
		theirs, told := c.theirs, c.told
		l := recorded(1)
		held := recordtest.Grant(1, 0, "worker-a")
		held.Work = "bill 12ab"
		must(t, l.Append(t.Context(), held))
		there := []store.Presence{}
		for name, work := range map[string]string{"worker-a": held.Work, "worker-b": theirs} {
			there = append(there, store.Presence{
				WorkerType: "export", ID: name, InstanceID: name, Schedule: "every 5m", Phase: store.PhaseCandidate, Work: work,
				Since: recordtest.Minutes(-5), Seen: recordtest.Minutes(0.5), Next: recordtest.Minutes(5),
			})
			if c.gone && name == "worker-a" {
				there[len(there)-1].Phase = store.PhaseStopped
			}
		}
		must(t, l.Attend(t.Context(), there))
		got, err := whyOf(t, l, "", "", "")
		must(t, err)
		const says = "It is there for another command (backup 34cd, that of worker-a is bill 12ab): give each a worker type of its own."
		if text := strings.Join(strings.Fields(got), " "); strings.Contains(text, says) != told || strings.Count(text, "another command") > 1 {
			t.Errorf("why, where another one does %q: %s", theirs, got)
		}
		s := statusOf("export", []store.Record{held}, recordtest.Minutes(1))
		s.take(there, true, recordtest.Minutes(1))
		if text := strings.Join(s.warnings, "; "); strings.Contains(text, "commands differ: ") != told {
			t.Errorf("status, where another one does %q: %s", theirs, text)
		}
	}
}
