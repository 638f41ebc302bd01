package tally

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

var me = event.Worker{WorkerType: "job", InstanceID: "me"}

// sums are the counters that aren't zero, by Prometheus' name and label, the counts of histograms, and the
// last success.
func sums(t *Tally) map[string]float64 {
	out := map[string]float64{}
	for _, r := range t.Read() {
		name, x := strings.TrimPrefix(r.PrometheusName(), "slotlease_"), r.X
		if r.Value != "" {
			name += "/" + r.Value
		}
		if r.Kind == Histogram {
			x = float64(r.Distribution.Count)
		}
		if x != 0 {
			out[name] = x
		}
	}
	return out
}

func TestEachEventIsCounted(t *testing.T) {
	why := errors.New("why")
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	nothing := map[string]float64{}
	one := func(name string) map[string]float64 { return map[string]float64{name: 1} }
	tests := []struct {
		event event.Event
		want  map[string]float64
	}{
		{event.Started{Worker: me}, nothing},
		{event.Claimed{Worker: me, Early: time.Second}, map[string]float64{"slots_won_total": 1, "claim_early_seconds": 1}},
		{event.Lost{Worker: me, Holder: store.Record{InstanceID: "x"}}, one("slots_lost_total")},
		{event.Lost{Worker: me, Inversion: true}, map[string]float64{"slots_lost_total": 1, "slots_inverted_total": 1}},
		{event.Missed{Worker: me, Count: 3, Why: workerlease.Unreachable}, map[string]float64{"slots_missed_total/store_unreachable": 3}},
		{event.Missed{Worker: me, Count: 1, Why: workerlease.Paused}, one("slots_missed_total/paused")},
		{event.Missed{Worker: me, Count: 1, Why: workerlease.Drained}, one("slots_missed_total/drained")},
		{event.Missed{Worker: me, Count: 1, Why: workerlease.Unattended}, one("slots_missed_total/no_worker_in_time")},
		{event.Missed{Worker: me, Count: 1, Why: "of a later version"}, one("slots_missed_total/_other")},
		{event.SlotDone{Worker: me}, one("slots_done_total")},
		{event.Exhausted{Worker: me}, one("slots_given_up_total")},
		{event.Skipped{Worker: me, Row: 1}, one("slots_skipped_total")},
		{event.Skipped{Worker: me, Row: 2}, map[string]float64{"slots_skipped_total": 1, "slots_skipped_again_total": 1}},
		{event.Allocated{Worker: me, Late: time.Second}, map[string]float64{"leases_allocated_total": 1, "slot_delay_seconds": 1}},
		{event.Extended{Worker: me}, one("leases_extended_total")},
		{event.Expired{Worker: me, Why: workerlease.WindowEnded}, one("leases_expired_total/window_ended")},
		{event.Expired{Worker: me, Why: workerlease.Paused}, one("leases_expired_total/paused")},
		{event.Expired{Worker: me, Why: workerlease.Drained}, one("leases_expired_total/drained")},
		{event.Expired{Worker: me, Why: workerlease.AskedToRelease}, one("leases_expired_total/asked_to_release")},
		{event.Released{Worker: me}, one("leases_released_total")},
		{event.Lapsed{Worker: me, Err: why}, one("leases_lapsed_total")},
		{event.Vanished{Worker: me, Err: why}, one("leases_vanished_total")},
		{event.TaskSucceeded{Worker: me, Took: time.Second, At: noon}, map[string]float64{
			"tasks_succeeded_total": 1, "task_duration_seconds": 1, "task_last_success_timestamp_seconds": float64(noon.Unix()),
		}},
		{event.TaskSucceeded{Worker: me}, one("tasks_succeeded_total")},
		{event.TaskFailed{Worker: me, Err: why}, one("tasks_failed_total/error")},
		{event.TaskFailed{Worker: me, Err: why, Cause: store.TimedOut}, one("tasks_failed_total/timed_out")},
		{event.TaskFailed{Worker: me, Err: why, Cause: store.SlotEnded}, one("tasks_failed_total/slot_ended")},
		{event.TaskFailed{Worker: me, Err: why, Cause: store.LeaseLost}, one("tasks_failed_total/lease_lost")},
		{event.TaskFailed{Worker: me, Err: why, Cause: store.Ordered}, one("tasks_failed_total/ordered")},
		{event.TaskFailed{Worker: me, Err: why, Cause: store.Stopped}, one("tasks_failed_total/stopped")},
		{event.WorkerDied{Worker: me}, one("tasks_failed_total/worker_died")},
		{event.Panic{Worker: me, Err: why}, one("tasks_failed_total/panic")},
		{event.Faltered{Worker: me}, one("tasks_failed_total/reported")},
		{event.Overrun{Worker: me}, one("tasks_overrun_total")},
		{event.StopFailed{Worker: me, Err: why}, one("workers_stop_failed_total")},
		{event.SteppedBack{Worker: me}, one("workers_stepped_back_total")},
		{event.Operated{Worker: me, Operation: "get for trim", Took: time.Second}, map[string]float64{
			"store_operations_total/get_for_trim": 1, "store_round_trip_seconds": 1,
		}},
		{event.StoreFailed{Worker: me, Operation: "tail", Err: why}, one("store_errors_total/tail")},
		{event.StoreFailed{Worker: me, Operation: "check", Err: why}, one("store_errors_total/_other")},
		{event.Throttled{Worker: me, Operation: "append", Err: why}, one("store_throttled_total/append")},
		{event.Unknown{Worker: me, Err: why}, one("store_unknown_outcomes_total")},
		{event.Conflict{Worker: me}, one("store_conflicts_total")},
		{event.Charged{Worker: me, Operation: "roster", Units: 2.5}, map[string]float64{"store_charges_total/roster": 2.5}},
		{event.Trimmed{Worker: me, Count: 7}, map[string]float64{"records_trimmed_total": 7}},
		{event.Poison{Worker: me, Err: why}, one("ledger_poisoned_total")},
		{event.PoisonReset{Worker: me}, one("ledger_resets_total")},
		{event.WentBack{Worker: me, Err: why}, one("store_went_back_total")},
		{event.Blocked{Worker: me}, one("ledger_blocked_total")},
		{event.ScheduleMismatch{Worker: me}, one("schedule_mismatches_total")},
		{event.WorkMismatch{Worker: me}, one("schedule_mismatches_total")},
		{event.RosterFailed{Worker: me, Err: why}, one("roster_failures_total")},
		{event.WatchFailed{Worker: me, Err: why}, one("watch_failures_total")},
		{event.ClockJump{Worker: me, Verdict: event.ClockInQuestion}, one("clock_jumps_total/in_question")},
		{event.ClockJump{Worker: me, Verdict: event.AnswerDropped}, one("clock_jumps_total/answer_dropped")},
		{event.ClockJump{Worker: me, Verdict: event.JumpConfirmed}, one("clock_jumps_total/confirmed")},
		{event.TooUncertain{Worker: me, Err: why}, one("clock_too_uncertain_total")},
		// What they say is asked of the worker, or said by another event.
		{event.ClockSample{Worker: me}, nothing},
		{event.HolderChanged{Worker: me}, nothing},
		{event.Returned{Worker: me}, nothing},
		{event.Rested{Worker: me}, nothing},
		{event.Postponed{Worker: me}, nothing},
		{event.Ranked{Worker: me}, nothing},
		{event.BecameIneligible{Worker: me, Err: why}, nothing},
		{event.BecameEligible{Worker: me}, nothing},
		{event.StoreWarning{Worker: me}, nothing},
		{event.Stuck{Worker: me}, nothing},
		{event.StoreRecovered{Worker: me}, nothing},
	}
	covered := map[string]bool{}
	for _, test := range tests {
		name := reflect.TypeOf(test.event).Name()
		covered[name] = true
		tally := New(Options{})
		tally.Observe(test.event)
		got := sums(tally)
		delete(got, "lease_held_seconds_total")
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s is counted as %v, want %v", name, got, test.want)
		}
	}
	files, err := filepath.Glob("../../event/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared [][]string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		declared = append(declared, regexp.MustCompile(`(?m)^\t([A-Z]\w*) struct \{\n\t+Worker\b`).FindAllStringSubmatch(string(source), -1)...)
	}
	for _, m := range declared {
		if !covered[m[1]] {
			t.Errorf("no test says what %s is counted as", m[1])
		}
	}
	if len(declared) < 35 {
		t.Errorf("found %d events, want all", len(declared))
	}
}

func TestAllReasonsAndOperationsHaveTheirOwnValue(t *testing.T) {
	for r := machine.WindowEnded; r <= machine.Barred; r++ {
		v := value(r.String())
		if !slices.Contains(missed.Values, v) && !slices.Contains(expired.Values, v) {
			t.Errorf("no counter has the reason %q", r)
		}
	}
	for op := machine.Sampling; op <= machine.Sighting; op++ {
		if v := value(op.String()); !slices.Contains(storeOperations.Values, v) {
			t.Errorf("no counter has the operation %q", op)
		}
	}
}

func TestValuesOfLabelsAreThereBeforeAnythingIsCounted(t *testing.T) {
	tally := New(Options{})
	tally.Observe(event.Started{Worker: me})
	var got []string
	for _, r := range tally.Read() {
		if r.Instrument == failed {
			got = append(got, r.Value)
		}
	}
	if want := []string{"error", "panic", "reported", "timed_out", "slot_ended", "lease_lost", "ordered", "stopped", "worker_died"}; !slices.Equal(got, want) {
		t.Errorf("after the start there are the reasons %q of failures, want %q: rates begin at zero", got, want)
	}
}

func TestTooManyWorkerTypesAreCountedTogether(t *testing.T) {
	tally := New(Options{Types: 2})
	for _, workerType := range []string{"a", "b", "c", "d", "b"} {
		tally.Observe(event.Conflict{Worker: event.Worker{WorkerType: workerType, InstanceID: "x"}})
	}
	got := map[string]float64{}
	for _, r := range tally.Read() {
		if r.Instrument == conflicts {
			got[r.WorkerType] = r.X
		}
	}
	if want := map[string]float64{"a": 1, "b": 2, Other: 2}; !reflect.DeepEqual(got, want) {
		t.Errorf("conflicts by worker type = %v, want %v", got, want)
	}
}

func TestAHistogramCountsEachObservationInItsBucket(t *testing.T) {
	tally := New(Options{})
	for _, late := range []time.Duration{-time.Second, time.Millisecond, time.Millisecond + 1, time.Minute, time.Hour} {
		tally.Observe(event.Allocated{Worker: me, Late: late})
	}
	for _, r := range tally.Read() {
		if r.Instrument != delay {
			continue
		}
		d := r.Distribution
		if d.Count != 5 || d.Sum < 3660 || d.Sum > 3660.1 {
			t.Errorf("count %d, sum %v, want 5 and 3660.002: a negative delay is none", d.Count, d.Sum)
		}
		last := len(d.Buckets) - 1
		if d.Buckets[0] != 2 || d.Buckets[1] != 1 || d.Buckets[last] != 1 {
			t.Errorf("buckets %v, want 2 up to 1 ms, 1 more up to 2.5 ms, and 1 up to a minute", d.Buckets)
		}
	}
}

func TestNamesAreUniqueInBothForms(t *testing.T) {
	names := map[string]bool{}
	for _, in := range Instruments() {
		for _, name := range []string{in.FullName(), in.PrometheusName()} {
			if names[name] {
				t.Errorf("two instruments are named %s", name)
			}
			names[name] = true
		}
		if in.Kind == Histogram && !slices.IsSorted(in.Bounds) {
			t.Errorf("the bounds of %s are not sorted: %v", in.Name, in.Bounds)
		}
		if !strings.HasSuffix(in.Help, ".") {
			t.Errorf("the help of %s is no sentence: %q", in.Name, in.Help)
		}
	}
}
