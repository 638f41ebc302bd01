package workerlease_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

func nothing(context.Context, workerlease.Lease) {}

// wordy is a schedule whose text is as long as one likes.
type wordy struct {
	slots.Schedule
	text string
}

func (w wordy) String() string { return w.text }

// shifted is a schedule whose next slot starts that much later than it should.
type shifted struct {
	slots.Schedule
	by time.Duration
}

func (s shifted) Next(t time.Time) slots.Slot {
	n := s.Schedule.Next(t)
	return slots.Slot{Start: n.Start.Add(s.by), End: n.End.Add(s.by)}
}

// wrongFrom is a shifted schedule that is right up to a time.
type wrongFrom struct {
	shifted
	from time.Time
}

func (s wrongFrom) Next(t time.Time) slots.Slot {
	if t.Before(s.from) {
		return s.Schedule.Next(t)
	}
	return s.shifted.Next(t)
}

// fine is a schedule whose slots start half a millisecond late.
type fine struct{ slots.Schedule }

func (f fine) At(t time.Time) slots.Slot {
	s := f.Schedule.At(t.Add(-500 * time.Microsecond))
	return slots.Slot{Start: s.Start.Add(500 * time.Microsecond), End: s.End.Add(500 * time.Microsecond)}
}

func (f fine) Next(t time.Time) slots.Slot { return f.At(f.At(t).End) }

func TestEveryBadOptionIsNamedWithItsValueAndTheRule(t *testing.T) {
	const interval = ": must be 0 (default), or whole milliseconds from 100ms to 366 days"
	five := slots.Must(slots.Every(5 * time.Minute))
	type o = workerlease.Options
	tests := []struct {
		name string
		bad  o
		want []string
	}{
		{"no worker type", o{}, []string{"WorkerType: is empty: use 1 to 63"}},
		{"worker type with a slash", o{WorkerType: "a/b"}, []string{`WorkerType: is "a/b": character '/' at position 2: use 1 to 63`}},
		{"worker type too long", o{WorkerType: strings.Repeat("x", 64)}, []string{`x": 64 bytes: use 1 to 63`}},
		{"instance id too long", o{WorkerType: "job", InstanceID: strings.Repeat("x", 257)}, []string{"InstanceID: ", "257", "at most 256"}},
		{"instance id with NUL", o{WorkerType: "job", InstanceID: "a\x00b"}, []string{"InstanceID: ", "NUL at byte 1", "not allowed"}},
		{"instance id not UTF-8", o{WorkerType: "job", InstanceID: "caf\xe9"}, []string{"InstanceID: "}},
		{"group not UTF-8", o{WorkerType: "job", Group: "caf\xe9"}, []string{"Group: "}},
		{"metadata not UTF-8", o{WorkerType: "job", Metadata: "caf\xe9"}, []string{"Metadata: "}},
		{"group too long", o{WorkerType: "job", Group: strings.Repeat("x", 257)}, []string{"Group: ", "257", "at most 256"}},
		{"group with NUL", o{WorkerType: "job", Group: "\x00"}, []string{"Group: ", "NUL at byte 0"}},
		{"metadata too long", o{WorkerType: "job", Metadata: strings.Repeat("x", 8193)}, []string{"Metadata: ", "8193", "at most 8192"}},
		{"priority negative", o{WorkerType: "job", Priority: -1}, []string{"Priority: ", "-1", "0 (highest) … 7"}},
		{"priority above 7", o{WorkerType: "job", Priority: 8}, []string{"Priority: ", "8", "0 (highest) … 7"}},
		{"tie-break unknown", o{WorkerType: "job", TieBreak: 4}, []string{"TieBreak: ", "4", "Sticky, Rotate, Random or Spread"}},
		{"interval too short", o{WorkerType: "job", LeaseInterval: 99 * time.Millisecond}, []string{"LeaseInterval: is 99ms" + interval}},
		{"interval negative", o{WorkerType: "job", LeaseInterval: -time.Second}, []string{"LeaseInterval: is -1s" + interval}},
		{"interval too long", o{WorkerType: "job", LeaseInterval: 367 * 24 * time.Hour}, []string{"LeaseInterval: is 8808h0m0s" + interval}},
		{"interval not whole ms", o{WorkerType: "job", LeaseInterval: time.Second + 1}, []string{"LeaseInterval: is 1.000000001s" + interval}},
		{"both", o{WorkerType: "job", LeaseInterval: time.Minute, Schedule: five}, []string{"LeaseInterval: ", "1m0s", "every 5m", "only one"}},
		{"schedule text too long", o{WorkerType: "job", Schedule: wordy{five, strings.Repeat("x", 513)}}, []string{"Schedule: ", "513", "at most 512"}},
		{"schedule with gaps", o{WorkerType: "job", Schedule: shifted{five, time.Second}}, []string{"Schedule: ", `"every 5m": Next(2023-12-`, "slot must end where the next one starts", "slots.Check"}},
		{"schedule with overlaps", o{WorkerType: "job", Schedule: shifted{five, -time.Second}}, []string{"Schedule: ", "doesn't end there"}},
		{"schedule that doesn't advance", o{WorkerType: "job", Schedule: shifted{five, -5 * time.Minute}}, []string{"Schedule: ", "doesn't end there"}},
		{"schedule of microseconds", o{WorkerType: "job", Schedule: fine{five}}, []string{"Schedule: ", "not in UTC and whole milliseconds"}},
		{"schedule that goes wrong this year", o{WorkerType: "job", Schedule: wrongFrom{shifted{five, time.Second}, time.Now().AddDate(0, 6, 0)}}, []string{"Schedule: ", "slots.Check"}},
		{"lead negative", o{WorkerType: "job", Lead: -1}, []string{"Lead: ", "-1ns", "0 (default) … 5m0s"}},
		{"lead above 5 min", o{WorkerType: "job", Lead: 301 * time.Second}, []string{"Lead: ", "5m1s", "0 (default) … 5m0s"}},
		{"step negative", o{WorkerType: "job", Step: -1}, []string{"Step: ", "-1ns", "0 (default) … 5m0s"}},
		{"margin too small", o{WorkerType: "job", Margin: 9 * time.Millisecond}, []string{"Margin: ", "9ms", "at least 10ms"}},
		{"margin negative", o{WorkerType: "job", Margin: -1}, []string{"Margin: ", "-1ns", "at least 10ms"}},
		{"margin of half a slot", o{WorkerType: "job", LeaseInterval: time.Second, Margin: 500 * time.Millisecond}, []string{"Margin: ", "500ms", "less than half of the shortest slot (1s)"}},
		{"margin of half of cron's shortest slot", o{WorkerType: "job", Schedule: slots.Must(slots.Cron("0,1 * * * *", "")), Margin: 30 * time.Second}, []string{"Margin: ", "30s", "(1m0s)"}},
		{"failover too short", o{WorkerType: "job", FailoverWithin: 79 * time.Millisecond}, []string{"FailoverWithin: ", "79ms", "8 × Margin (80ms)", "half of the shortest slot (2m30s)"}},
		{"failover too short for the margin", o{WorkerType: "job", FailoverWithin: time.Second, Margin: 200 * time.Millisecond}, []string{"FailoverWithin: ", "1s", "8 × Margin (1.6s)"}},
		{"failover too long", o{WorkerType: "job", FailoverWithin: 151 * time.Second}, []string{"FailoverWithin: ", "2m31s", "half of the shortest slot (2m30s)"}},
		{"failover with a huge margin", o{WorkerType: "job", LeaseInterval: 24 * time.Hour, FailoverWithin: time.Hour, Margin: 3 * time.Minute}, []string{"Margin: ", "3m0s", "at most 2m30s with FailoverWithin"}},
		{"failover negative", o{WorkerType: "job", FailoverWithin: -time.Second}, []string{"FailoverWithin: ", "-1s", "8 × Margin"}},
		{"failover and a long lead", o{WorkerType: "job", FailoverWithin: 10 * time.Second, Lead: 6 * time.Second}, []string{"Lead: ", "6s", "half of FailoverWithin (5s)"}},
		{"failover in a group", o{WorkerType: "job", FailoverWithin: 10 * time.Second, Group: "g"}, []string{"FailoverWithin: ", "10s", `Group is "g"`, "only one"}},
		{"continuous in a group", o{WorkerType: "job", Continuous: true, Group: "g"}, []string{"Continuous: ", `Group is "g"`, "only one"}},
		{"no failback alone", o{WorkerType: "job", NoFailback: true}, []string{"NoFailback: ", "without Continuous", "set both"}},
		{"a job, with callbacks", o{WorkerType: "job", Job: &workerlease.Job{}}, []string{"Job: ", "use Run"}},
		{"backoff too short", o{WorkerType: "job", MinBackoff: time.Microsecond}, []string{"MinBackoff: ", "1µs", "1ms … 1h"}},
		{"backoff out of order", o{WorkerType: "job", MinBackoff: 2 * time.Second, MaxBackoff: time.Second}, []string{"MinBackoff: ", "2s", "1s", "in order"}},
		{"longest backoff too short", o{WorkerType: "job", MaxBackoff: -1}, []string{"MaxBackoff: ", "-1ns", "1ms … 1h"}},
		{"shortest backoff too long", o{WorkerType: "job", MinBackoff: 2 * time.Hour}, []string{"MinBackoff: ", "2h0m0s", "1ms … 1h"}},
		{"backoff too long", o{WorkerType: "job", MaxBackoff: 2 * time.Hour}, []string{"MaxBackoff: ", "2h0m0s", "1ms … 1h"}},
		{"retention too short", o{WorkerType: "job", Retention: time.Hour}, []string{"Retention: ", "1h0m0s", "at least 2h0m0s"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, err := workerlease.StartLeasing(t.Context(), memory.New(memory.Options{}), test.bad, workerlease.Callbacks{LeaseAllocated: nothing})
			if w != nil || !errors.Is(err, workerlease.ErrOptions) {
				t.Fatalf("StartLeasing = %v, %v; want nil, ErrOptions", w, err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error has no %q: %v", want, err)
				}
			}
			if n := strings.Count(err.Error(), "\n"); n != 0 {
				t.Errorf("%d problems for one bad option: %v", n+1, err)
			}
		})
	}
}

// With a Job, FailoverWithin has a default. What doesn't fit that is reported of the
// option that was set.
func TestAJobBlamesTheOptionThatWasSet(t *testing.T) {
	tight := slots.Must(slots.Every(100 * time.Millisecond))
	type o = workerlease.Options
	for name, test := range map[string]struct {
		bad  o
		want string
		not  string
	}{
		"short slots":     {o{LeaseInterval: 100 * time.Millisecond}, "LeaseInterval: makes slots of 100ms, and Job is set: they are too short for others to try again: must be at least 160ms", "FailoverWithin"},
		"a tight one":     {o{Schedule: tight}, "Schedule: makes slots of 100ms, and Job is set: they are too short", "FailoverWithin"},
		"a long margin":   {o{Margin: 30 * time.Second}, "Margin: is 30s: must be at most a sixteenth of the shortest slot (18.75s) with Job, for others to try again", "FailoverWithin"},
		"a huge margin":   {o{LeaseInterval: 24 * time.Hour, Margin: 3 * time.Minute}, "Margin: is 3m0s: must be at most 2m30s with Job", "FailoverWithin"},
		"a bad margin":    {o{Margin: -1}, "Margin: is -1ns: must be 0 (default), or at least 10ms", "FailoverWithin"},
		"a long lead":     {o{Lead: time.Minute}, "Lead: is 1m0s: must be at most 30s with Job, half of the FailoverWithin that comes with it (1m0s): set that as well", "half of FailoverWithin"},
		"a group":         {o{Group: "g"}, `Job: is set, and Group is "g": a group works in each slot together: set only one of them`, "FailoverWithin"},
		"continuous":      {o{Continuous: true}, "Job: is set, and Continuous too: a job of each slot doesn't go on into the next: set only one of them", "FailoverWithin"},
		"failover itself": {o{FailoverWithin: 3 * time.Minute}, "FailoverWithin: is 3m0s: must be 0 (none), or at least 8 × Margin (2s)", "with Job"},
		"its group":       {o{FailoverWithin: time.Minute, Group: "g"}, `Job: is set, and Group is "g"`, "FailoverWithin"},
		"attempts":        {o{Job: &workerlease.Job{MaxAttempts: -1}}, "Job.MaxAttempts: is -1: must be 0 (default) … 1000000", "with Job"},
		"many attempts":   {o{Job: &workerlease.Job{MaxAttempts: store.MaxAttempt + 1}}, "Job.MaxAttempts: is 1000001: must be 0 (default) … 1000000", "with Job"},
		"a late start":    {o{Job: &workerlease.Job{StartWithin: 6 * time.Minute}}, "Job.StartWithin: is 6m0s: must be 0 (default), or 10ms to the shortest slot (5m0s)", "with Job"},
		"no time":         {o{Job: &workerlease.Job{StartWithin: time.Millisecond}}, "Job.StartWithin: is 1ms: must be 0 (default), or 10ms to", "with Job"},
		"an overrun":      {o{Job: &workerlease.Job{Overrun: 2}}, "Job.Overrun: is OverrunPolicy(2): must be Finish or Stop", "with Job"},
		"a timeout":       {o{Job: &workerlease.Job{Timeout: time.Millisecond}}, "Job.Timeout: is 1ms: must be 0 (none) or at least 10ms", "with Job"},
		"a catch-up":      {o{Job: &workerlease.Job{CatchUp: 3}}, "Job.CatchUp: is CatchUp(3): must be CatchUpNone, CatchUpNewest or CatchUpAll", "with Job"},
		"long ago":        {o{Job: &workerlease.Job{CatchUp: 1, CatchUpWithin: 9000 * time.Hour}}, "Job.CatchUpWithin: is 9000h0m0s: must be 0 (default), or 10ms to 366 days", "with Job"},
		"too soon":        {o{Job: &workerlease.Job{CatchUp: 1, CatchUpWithin: 75 * time.Second}}, "Job.CatchUpWithin: is 1m15s: must be more than Job.StartWithin (1m15s): no slot is missed before that", "with Job"},
		"for a long slot": {o{Schedule: slots.Must(slots.Cron("0,10 2 * * *", "")), Job: &workerlease.Job{CatchUp: 1, CatchUpWithin: 30 * time.Minute}}, "Job.CatchUpWithin: is 30m0s: must be more than Job.StartWithin (1h0m0s): no slot is missed before that", "with Job"},
		"too late":        {o{LeaseInterval: 24 * time.Hour, Job: &workerlease.Job{CatchUp: 2, StartWithin: 24 * time.Hour}}, "Job.StartWithin: is 24h0m0s: must be less than Job.CatchUpWithin (24h0m0s): no slot is missed before it is too old to be caught up", "with Job"},
		"stopped anyway":  {o{Job: &workerlease.Job{Overrun: workerlease.Stop, Timeout: 5 * time.Minute}}, "Job.Timeout: is 5m0s, and Job.Overrun is stop: must be less than a slot (5m0s), at whose end the run is stopped anyway", "with Job"},
		"of nothing":      {o{Job: &workerlease.Job{CatchUpWithin: time.Hour}}, "Job.CatchUpWithin: is 1h0m0s, and Job.CatchUp is none: set that to newest or all", "with Job"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			test.bad.WorkerType = "job"
			if test.bad.Job == nil {
				test.bad.Job = &workerlease.Job{}
			}
			err := workerlease.Run(ctx, memory.New(memory.Options{}), test.bad, func(context.Context, workerlease.Lease) error { return nil })
			if !errors.Is(err, workerlease.ErrOptions) {
				t.Fatalf("Run = %v, want ErrOptions", err)
			}
			if text := err.Error(); !strings.Contains(text, test.want) || strings.Contains(text, test.not) || strings.Contains(text, "\n") {
				t.Errorf("Run = %v, want one problem, %q, and no %q", err, test.want, test.not)
			}
		})
	}
}

func TestTheLimitsThemselvesAreAllowed(t *testing.T) {
	five := slots.Must(slots.Every(5 * time.Minute))
	for name, o := range map[string]workerlease.Options{
		"longest":  {WorkerType: strings.Repeat("x", 63), InstanceID: strings.Repeat("x", 256), Metadata: strings.Repeat("x", 8192), Priority: 7, TieBreak: priority.Random, Lead: 5 * time.Minute, Step: 5 * time.Minute},
		"shortest": {WorkerType: "x", LeaseInterval: 100 * time.Millisecond, Margin: 10 * time.Millisecond, Lead: 1, Step: 1, Retention: 2 * time.Hour},
		"schedule": {WorkerType: "x", Schedule: wordy{five, strings.Repeat("x", 512)}},
	} {
		bubble(t, name, func(t *testing.T) {
			w := start(t, setup{Options: o})
			wait := 11 * time.Minute
			if o.LeaseInterval != 0 {
				wait = 3 * o.LeaseInterval
			}
			at(wait)
			if len(w.history()) == 0 {
				t.Errorf("never allocated: %v", w.Status().LastError)
			}
		})
	}
}

func TestDefaultsDependOnTheInterval(t *testing.T) {
	for interval, margin := range map[time.Duration]time.Duration{
		0:                      250 * time.Millisecond, // 5 min
		5 * time.Minute:        250 * time.Millisecond,
		10 * time.Second:       100 * time.Millisecond,
		time.Second:            10 * time.Millisecond,
		100 * time.Millisecond: 10 * time.Millisecond,
	} {
		bubble(t, interval.String(), func(t *testing.T) {
			w := start(t, setup{Options: workerlease.Options{LeaseInterval: interval}})
			length := interval
			if length == 0 {
				length = 5 * time.Minute
			}
			at(3*length + length/2)
			u := w.turn(t, 1)
			if got := u.lease.Slot.Length(); got != length {
				t.Errorf("the slot is %v long, want %v", got, length)
			}
			lead := min(length/4, 10*time.Second)
			want := u.lease.Expiry.Sub(t0) - lead + drifted(lead-margin-time.Millisecond, 1e-3)
			if u.ended < want-2*time.Microsecond || u.ended > want+1100*time.Microsecond {
				t.Errorf("the lease ended at %v, want %v for a margin of %v", u.ended, want, margin)
			}
		})
	}
	bubble(t, "instance id", func(t *testing.T) {
		a, b := start(t, setup{}), start(t, setup{})
		if x, y := a.Status().InstanceID, b.Status().InstanceID; x == y || x == "" || strings.Count(x, "-") < 2 {
			t.Errorf("InstanceID %q and %q, want two of the form host-pid-xxxx", x, y)
		}
	})
	t.Run("retention", func(t *testing.T) {
		if workerlease.DefaultRetention != 24*time.Hour {
			t.Errorf("DefaultRetention = %v, want 24h", workerlease.DefaultRetention)
		}
	})
}

func TestTheVersionIsThatOfTheBuild(t *testing.T) {
	if v := workerlease.Version(); v == "" {
		t.Error("Version is empty")
	}
}

func TestARandThatFailsIsNotPassedOver(t *testing.T) {
	client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{Rand: strings.NewReader("")})
	_, err := client.StartLeasing(t.Context(), workerlease.Options{WorkerType: "job"}, workerlease.Callbacks{LeaseAllocated: nothing})
	if !errors.Is(err, workerlease.ErrOptions) || !errors.Is(err, io.EOF) {
		t.Errorf("StartLeasing = %v, want an error: claims would repeat", err)
	}
}
