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

// A worker says the time of its shortest slot. By default, a longer one has more.
func TestASlotIsOverdueByItsOwnTime(t *testing.T) {
	nine := recordtest.Grant(1, 0, "a")
	nine.Schedule, nine.Attempt = "cron 0 9,10 * * *", 1
	nine.SlotStart, nine.SlotEnd = recordtest.Minutes(-180), recordtest.Minutes(-120)
	nine.WindowStart, nine.WindowEnd, nine.FixedAt, nine.Token = nine.SlotStart, nine.SlotEnd, nine.SlotStart, nine.SlotStart.UnixMilli()
	done := recordtest.Done(nine, 2, nine.SlotEnd, recordtest.Minutes(-150))
	done.Done = store.Done{Start: nine.SlotStart, End: nine.SlotEnd, Zone: "UTC"}.String()
	for name, test := range map[string]struct {
		job  store.JobTimes
		at   float64
		want time.Duration
	}{
		"by default":          {store.JobTimes{StartWithin: 15 * time.Minute, StartDefault: true}, -100, 0},
		"by default, overdue": {store.JobTimes{StartWithin: 15 * time.Minute, StartDefault: true}, -50, 10 * time.Minute},
		"as set":              {store.JobTimes{StartWithin: 15 * time.Minute}, -100, 5 * time.Minute},
	} {
		s := statusOf("export", []store.Record{done, nine}, recordtest.Minutes(test.at))
		s.job = &test.job
		if got := s.overdue(recordtest.Minutes(test.at)); got != test.want {
			t.Errorf("%s: the slot from %v is overdue for %v, want %v", name, s.due, got, test.want)
		}
	}
}
