package workerlease_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

func TestEachBadOptionIsAnOptionErrorWithItsField(t *testing.T) {
	_, err := workerlease.StartLeasing(t.Context(), nil, workerlease.Options{
		WorkerType: "no spaces", Priority: 9, Group: "g", Continuous: true, Margin: time.Millisecond,
		Job: &workerlease.Job{MaxAttempts: -1}, MaxBackoff: 2 * time.Hour, LeaseInterval: 1, Lead: -1, Step: -1, Retention: 1,
	}, workerlease.Callbacks{})
	if !errors.Is(err, workerlease.ErrOptions) || !errors.Is(err, store.ErrInvalid) {
		t.Errorf("StartLeasing = %v, want ErrOptions and ErrInvalid in it", err)
	}
	var fields []string
	for _, e := range workerlease.OptionErrors(err) {
		fields = append(fields, e.Field)
		if !errors.Is(e, workerlease.ErrOptions) || !strings.Contains(err.Error(), e.Error()) || strings.Contains(e.Error(), "\n") {
			t.Errorf("%q: want one line of %v, and an ErrOptions", e, err)
		}
	}
	want := []string{
		"WorkerType", "Priority", "LeaseInterval", "Margin", "Lead", "Step", "Job", "Job", "Job.MaxAttempts", "MaxBackoff", "Retention",
		"ledger", "Job", "LeaseAllocated",
	}
	if !slices.Equal(fields, want) {
		t.Errorf("fields = %q, want %q, of %v", fields, want, err)
	}
	for _, e := range workerlease.OptionErrors(err) {
		if e.Field == "Margin" && (e.Value != "1ms" || !strings.HasPrefix(e.Rule, "must be 0 (default)")) {
			t.Errorf("Margin: value %q, rule %q", e.Value, e.Rule)
		}
	}
	if found := workerlease.OptionErrors(errors.Join(store.ErrInvalid)); len(found) > 0 {
		t.Errorf("OptionErrors of another error = %v, want none", found)
	}
}

func TestResolvedOptionsHaveAllDefaultsAndResolveToThemselves(t *testing.T) {
	job := &workerlease.Job{MaxAttempts: 3, MinRetry: time.Minute}
	o := workerlease.Options{WorkerType: "job", LeaseInterval: 10 * time.Minute, Job: job}
	r, err := o.Resolved()
	must(t, err)
	if r.Schedule.String() != "every 10m" || r.InstanceID == "" || r.FailoverWithin != time.Minute || r.Margin != 250*time.Millisecond ||
		r.MinBackoff != 100*time.Millisecond || r.MaxBackoff != 5*time.Second || r.Retention != workerlease.JobRetention(10*time.Minute) {
		t.Errorf("resolved options = %+v", r)
	}
	if r.Job == job || *r.Job != *job {
		t.Errorf("Job = %+v at the caller's address, or changed; want a copy", r.Job)
	}
	again, err := r.Resolved()
	if err != nil || *again.Job != *r.Job {
		t.Fatalf("resolved again: %+v, %v", again.Job, err)
	}
	if again.Job = r.Job; !reflect.DeepEqual(again, r) {
		t.Errorf("resolved again: %+v, want %+v", again, r)
	}
	if _, err := (workerlease.Options{}).Resolved(); !errors.Is(err, workerlease.ErrOptions) {
		t.Errorf("Resolved without a worker type: %v, want ErrOptions", err)
	}
}

func TestTimingFollowsFromOptions(t *testing.T) {
	noon := time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)
	timing := func(o workerlease.Options) workerlease.Timing {
		t.Helper()
		o.WorkerType = "job"
		timing, err := o.Timing()
		must(t, err)
		return timing
	}
	plain := timing(workerlease.Options{})
	slot := plain.Options.Schedule.At(noon)
	equal(t, "lead and shortest slot", []time.Duration{plain.Lead(slot), plain.LeadAfter(time.Second), plain.ShortestSlot},
		10*time.Second, 250*time.Millisecond, 5*time.Minute)
	if parts := plain.Parts(slot); !slices.Equal(parts, []slots.Slot{slot}) {
		t.Errorf("parts = %v, want the slot", parts)
	}
	if d := plain.ExtendsBefore(slot, slot.End); d != 0 {
		t.Errorf("a lease that ends with its slot is extended %v before", d)
	}
	parted := timing(workerlease.Options{FailoverWithin: time.Minute})
	parts := parted.Parts(slot)
	equal(t, "extension, longest part, lead", []time.Duration{parted.ExtendEarly, parted.LongestPart, parted.Lead(slot), parted.ExtendSampleAge, parted.ClaimSampleAge(0)},
		15*time.Second, 45*time.Second, 10*time.Second, 2*time.Minute, time.Second)
	open := slot.Length() - 10*time.Second
	if n := parted.PartsBefore(open); len(parts) != int(n)+1 || n != 7 || !parts[n].Start.Equal(slot.Start.Add(open)) || !parts[n].End.Equal(slot.End) {
		t.Errorf("parts = %v, want 7, and one as long as the lead", parts)
	}
	if d := parted.ExtendsBefore(slot, parts[0].End); d != 15*time.Second {
		t.Errorf("a part is extended %v before its end", d)
	}
	leads := timing(workerlease.Options{Continuous: true, NoFailback: true})
	last := timing(workerlease.Options{Continuous: true, Priority: priority.Lowest})
	equal(t, "extensions over a boundary", []time.Duration{leads.ExtendsBefore(slot, slot.End), last.ExtendsBefore(slot, slot.End)},
		10*time.Second, 10*time.Second-7*(10*time.Second/9))
}

func TestTimingSaysTheTimesOfAJob(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		job    workerlease.Job
		length time.Duration
		want   store.JobTimes
	}{
		"a minute":  {workerlease.Job{}, time.Minute, store.JobTimes{StartWithin: 15 * time.Second, StartDefault: true, Overrun: "finish", CatchUp: "none"}},
		"a day":     {workerlease.Job{CatchUp: workerlease.CatchUpNewest, MaxAttempts: 3}, day, store.JobTimes{StartWithin: time.Hour, StartDefault: true, Overrun: "finish", CatchUp: "newest", CatchUpWithin: day, MaxAttempts: 3, RetriesOver: 18 * time.Minute}},
		"two weeks": {workerlease.Job{CatchUp: workerlease.CatchUpAll, Timeout: time.Hour}, 14 * day, store.JobTimes{StartWithin: time.Hour, StartDefault: true, Overrun: "finish", Timeout: time.Hour, CatchUp: "all", CatchUpWithin: 14 * day, MaxAttempts: 10, RetriesOver: 84*time.Hour + 30*time.Minute}},
		"given":     {workerlease.Job{StartWithin: time.Minute, Overrun: workerlease.Stop, CatchUp: workerlease.CatchUpAll, CatchUpWithin: time.Hour, MinRetry: time.Second}, day, store.JobTimes{StartWithin: time.Minute, Overrun: "stop", CatchUp: "all", CatchUpWithin: time.Hour, MaxAttempts: 10, RetriesOver: 511 * time.Second}},
	} {
		timing, err := workerlease.Options{WorkerType: "job", LeaseInterval: c.length, Job: &c.job}.Timing()
		must(t, err)
		slot := timing.Options.Schedule.At(t0)
		for length := range 4 {
			other := slots.Slot{Start: slot.Start, End: slot.Start.Add(time.Duration(length+1) * c.length)}
			if said := timing.JobTimes().StartsWithin(other.Length()); said != timing.StartWithin(other) {
				t.Errorf("%s: it says that a slot of %v may begin within %v, want %v", name, other.Length(), said, timing.StartWithin(other))
			}
		}
		if got := timing.JobTimes(); got == nil || *got != c.want || timing.StartWithin(slot) != c.want.StartWithin || timing.CatchUpWithin(slot) != c.want.CatchUpWithin {
			t.Errorf("%s: the job's times are %+v, of its slot %v and %v, want %+v", name, got, timing.StartWithin(slot), timing.CatchUpWithin(slot), c.want)
		}
	}
	if plain, err := (workerlease.Options{WorkerType: "job"}).Timing(); err != nil || plain.JobTimes() != nil {
		t.Errorf("a worker without a job has the times %+v, %v", plain.JobTimes(), err)
	}
}
