package app

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/firings"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// The times of a job are those that its workers say, and if none does, that is said.
func TestNextKnowsTheTimesOfAJobByItsWorkers(t *testing.T) {
	t.Parallel()
	for name, job := range map[string]*store.JobTimes{
		"a worker says them": {StartWithin: 40 * time.Second, Overrun: "finish", Timeout: 2 * time.Minute, CatchUp: "all", CatchUpWithin: 48 * time.Hour},
		"none does":          nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			now := storeTime(t, l)
			r := recordtest.Grant(1, 0, "a")
			r.Attempt, r.Schedule = 1, "every 5m"
			p := store.Presence{
				WorkerType: "export", ID: "1", Client: "1", InstanceID: "a", Host: "vm-1", PID: 7, Schedule: "every 5m",
				Phase: store.PhaseCandidate, Since: now, Seen: now, Next: now.Add(5 * time.Minute), Job: job,
			}
			must(t, errors.Join(l.Append(t.Context(), r), l.(store.Roster).Attend(t.Context(), []store.Presence{p})))
			got := leasectl(t, nil, "next", "--store", storeArg, "--worker-type", "export", "--count", "1", "--output", "json")
			var list firings.Report
			if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || got.code != exit.OK || len(list.Slots) != 1 {
				t.Fatalf("leasectl next = %+v, %v", got, err)
			}
			start, err := time.Parse(time.RFC3339, list.Slots[0].Start)
			must(t, err)
			begunBy := ""
			var times *inspect.JobTimes
			if job != nil {
				begunBy, times = store.Format(start.Add(job.StartWithin)), inspect.JobJSON(job)
			}
			if list.Slots[0].BegunBy != begunBy || !reflect.DeepEqual(list.Job, times) || strings.Contains(list.Note, "the times of its job aren't known") != (job == nil) {
				t.Errorf("leasectl next = %+v, want what workers say of their job", list)
			}
		})
	}
}

// One name has one place on all machines, and so one schedule: by flags, and by the text that a record has.
func TestNextShowsComposedSchedules(t *testing.T) {
	t.Parallel()
	dates := filepath.Join(t.TempDir(), "holidays")
	must(t, os.WriteFile(dates, []byte("# holidays\n2026-12-24..2026-12-26  # Christmas\n\n2027-01-01,2027-01-06\n"), 0o600))
	for want, args := range map[string][]string{
		"every 1h30m from 00:30":                                                   {"--every", "90m", "--from", "00:30"},
		"every 336h from 1970-01-07T06:00:00Z":                                     {"--every", "336h", "--from", "2026-01-07T06:00:00Z"},
		"cron 0 12 * * 6 + cron 0 2 * * 1-5":                                       {"--cron", "0 2 * * 1-5", "--cron", "0 12 * * 6"},
		"cron @daily Asia/Tokyo except 2026-12-25":                                 {"--cron", "@daily", "--zone", "Asia/Tokyo", "--except", "2026-12-25"},
		"every 1h except 2026-12-24..2026-12-26,2026-12-31..2027-01-01,2027-01-06": {"--every", "1h", "--except", "2026-12-31", "--except-file", dates},
		"cron @hourly shifted 1m37.564s":                                           {"--cron", "@hourly", "--spread", "10m", "--worker-type", "report"},
	} {
		var list firings.Report
		got := leasectl(t, nil, append([]string{"next", "--output", "json"}, args...)...)
		if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || list.Schedule != want || len(list.Slots) != 5 {
			t.Errorf("leasectl next %q = %+v, %v, want the schedule %q", args, got, err, want)
		}
	}
	l, storeArg := newLedger(t)
	r := recordtest.Grant(1, 0, "a")
	r.Schedule = "cron @hourly shifted 1m37.564s"
	must(t, l.Append(t.Context(), r))
	got := leasectl(t, nil, "next", "--store", storeArg, "--worker-type", "export", "--count", "1")
	if got.code != exit.OK || !strings.Contains(got.stdout, ":01:37.564Z") {
		t.Errorf("leasectl next = %+v, want the place that the record has", got)
	}
}

func TestSchedulesThatCannotBeAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	dates := filepath.Join(t.TempDir(), "holidays")
	must(t, os.WriteFile(dates, []byte("2026-12-24\n25.12.2026\n"), 0o600))
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--every", "90m", "--from", "noon", "--except", "x,2026-13-01"}, []string{`--from "noon": not a time of day`, `--except "x": not a date`, `--except "2026-13-01": not a date`}},
		{[]string{"--cron", "0 10 * * ? *", "--cron", "*/90 * * * *", "--zone", "Mars/X"}, []string{`write "0 10 * * *"`, `"every 1h30m"`, `--zone "Mars/X"`}},
		{[]string{"--cron", "@daily", "--from", "00:30"}, []string{`--from "00:30": goes with --every only`}},
		{[]string{"--every", "5m", "--except-file", dates}, []string{"--except-file " + dates + `:2: "25.12.2026": not a date`}},
		{[]string{"--every", "5m", "--except-file", dates + "-missing"}, []string{"no such file"}},
		{[]string{"--every", "5m", "--spread", "6m", "--worker-type", "a"}, []string{"--spread 6m0s: want at least 1ms, and at most the shortest slot (5m)"}},
		{[]string{"--every", "5m", "--spread", "1m"}, []string{"give --worker-type"}},
		{[]string{"--cron", "@yearly", "--except", "2027-01-01"}, []string{"--except 2027-01-01: a slot would last more than 366 days"}},
		{[]string{"--every", "5m", "--overrun", "stop", "--catch-up", "all"}, []string{`--overrun "stop": goes with --once-per-slot only`, `--catch-up "all": goes with`}},
		{[]string{"--every", "5m", "--once-per-slot", "--overrun", "stop", "--run-timeout", "5m", "--catch-up", "all", "--catch-up-within", "75s"}, []string{"--run-timeout is 5m0s, and --overrun is stop: must be less than a slot (5m0s)", "--catch-up-within is 1m15s: must be more than --start-within (1m15s)"}},
		{[]string{"--worker-type", "a", "--except", "2027-01-01", "--from", "1:00"}, []string{"--except: not with --worker-type", "--from: not with --worker-type"}},
	} {
		got := leasectl(t, nil, append([]string{"next"}, c.args...)...)
		for _, want := range c.want {
			if got.code != exit.Usage || !strings.Contains(got.stderr, want) {
				t.Errorf("leasectl next %q = %+v, want %q", c.args, got, want)
			}
		}
	}
}
