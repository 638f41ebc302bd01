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
	l := recorded(4)
	err := l.Attend(t.Context(), []store.Presence{{
		WorkerType: "export", ID: "a", Client: "a", InstanceID: "worker-a", Schedule: "every 5m", Phase: store.PhaseCandidate,
		Job: &store.JobTimes{StartWithin: time.Minute}, Since: recordtest.Minutes(3), Seen: recordtest.Minutes(3), Next: recordtest.Minutes(8),
	}})
	must(t, err)
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

// A run of --once that succeeds may have outlasted its slot. What it skipped isn't overdue, and what comes after it is.
func TestASlotThatWasSkippedIsNotOverdue(t *testing.T) {
	a := attempt(1, 0, "a", 1, 0, 5)
	last := recordtest.Part(3, a, 10, 12)
	run := []store.Record{finished(4, last, 1, 11), last, recordtest.Part(2, a, 5, 10), a}
	for at, want := range map[float64]time.Duration{14: 0, 16: 0, 21: time.Minute} {
		s := statusOf("export", run, recordtest.Minutes(at))
		s.take(nil, false, recordtest.Minutes(at))
		if got := s.overdue(recordtest.Minutes(at)); got != want {
			t.Errorf("after %v min the slot from %v is overdue for %v, want %v", at, s.due, got, want)
		}
	}
	failed := statusOf("export", run[1:], recordtest.Minutes(16))
	failed.take(nil, false, recordtest.Minutes(16))
	if failed.overdue(recordtest.Minutes(16)) == 0 {
		t.Error("after a run that failed the job isn't overdue")
	}
}
