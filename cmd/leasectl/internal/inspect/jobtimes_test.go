package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// A worker that came too late to begin the job of a slot that nobody had, as on a first deployment by day.
func TestWhySaysUpToWhenAJobMayBegin(t *testing.T) {
	l := recorded(t, 4)
	err := l.Attend(t.Context(), []store.Presence{{
		WorkerType: "export", ID: "a", Client: "a", InstanceID: "worker-a", Schedule: "every 5m", Phase: store.PhaseCandidate,
		Job: &store.JobTimes{StartWithin: time.Minute}, Since: recordtest.Minutes(3), Seen: recordtest.Minutes(3), Next: recordtest.Minutes(8),
	}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "It began at 12:03:00Z, too late for the slot from 12:00:00Z, whose job may begin until 12:01:00Z (--start-within)."
	if got, err := whyOf(t, l, "", "", ""); err != nil || !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
		t.Errorf("why = %s, %v, want %q", got, err, want)
	}
}
