package flagname

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

func TestProblemsNameTheFlagTheValueAndWhatToDo(t *testing.T) {
	for want, o := range map[string]workerlease.Options{
		"--margin is 3m0s: must be at least 10ms and less than half of the shortest slot (5m0s)":                                          {WorkerType: "t", Margin: 3 * time.Minute},
		"--no-failback is set without --continuous: set both":                                                                             {WorkerType: "t", NoFailback: true},
		`--continuous is set, and --group is "Margin": a group's lease can't be extended: set only one of them`:                           {WorkerType: "t", Continuous: true, Group: "Margin"},
		"--once-per-slot is set, and --continuous too: a job of each slot doesn't go on into the next: set only one of them":              {WorkerType: "t", Continuous: true, Job: &workerlease.Job{}},
		"--max-attempts is -1: must be 0 (default) … 1000000":                                                                             {WorkerType: "t", Job: &workerlease.Job{MaxAttempts: -1}},
		"--margin is 19s: must be at most a sixteenth of the shortest slot (18.75s) with --once-per-slot, for others to try again":        {WorkerType: "t", Margin: 19 * time.Second, Job: &workerlease.Job{}},
		"--lead is 20s: must be at most half of --failover-within (10s), which is lost when a worker dies that has claimed the next slot": {WorkerType: "t", FailoverWithin: 20 * time.Second, Lead: 20 * time.Second},
		"--run-timeout is 1ms: must be at least 10ms":                                                                                     {WorkerType: "t", Job: &workerlease.Job{Timeout: time.Millisecond}},
		`--group has 257 bytes: at most 256 allowed`:                                                                                      {WorkerType: "t", Group: strings.Repeat("g", 257)},
	} {
		_, err := o.Resolved()
		errs := workerlease.OptionErrors(err)
		if len(errs) != 1 || Problem(errs[0]) != want {
			t.Errorf("Problem(%v) = %q, want %q", err, Problem(errs[0]), want)
		}
	}
}

func TestOnlyFieldsOfOptionsHaveFlags(t *testing.T) {
	for field := range flags {
		of, rest := reflect.TypeFor[workerlease.Options](), field
		if after, ok := strings.CutPrefix(field, "Job."); ok {
			of, rest = reflect.TypeFor[workerlease.Job](), after
		}
		if _, ok := of.FieldByName(rest); !ok {
			t.Errorf("%s is no field of %v", field, of)
		}
	}
}
