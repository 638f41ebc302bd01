package tally

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// begin starts a worker with slots of a minute, which is stopped with the test.
func begin(t *testing.T, tally *Tally, ledger store.Ledger, o workerlease.Options, task workerlease.Task) *workerlease.WorkerLease {
	t.Helper()
	o.WorkerType, o.LeaseInterval = "job", time.Minute
	w, err := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: tally}).StartTask(t.Context(), o, task)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, w) })
	return w
}

func end(t *testing.T, w *workerlease.WorkerLease) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.StopLeasing(ctx); err != nil {
		t.Error(err)
	}
}

func work(ctx context.Context, _ workerlease.Lease) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// readings are values by Prometheus' names, -1 where there is none, at a time since the bubble began.
func readings(t *testing.T, tally *Tally, at time.Duration, names ...string) []float64 {
	t.Helper()
	time.Sleep(at - time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
	synctest.Wait()
	all := map[string]float64{}
	for _, r := range tally.Read() {
		if r.Value == "" {
			all[r.PrometheusName()] = r.X
		}
	}
	out := make([]float64, 0, len(names))
	for _, name := range names {
		x, ok := all["slotlease_"+name]
		if !ok {
			x = -1
		}
		out = append(out, x)
	}
	return out
}

// near reports readings that are off by more than 0.3, half of a slot's margin and a bit.
func near(t *testing.T, at time.Duration, got []float64, want ...float64) {
	t.Helper()
	for i := range want {
		if math.Abs(got[i]-want[i]) > 0.3 {
			t.Errorf("at %v: %v, want %v", at, got, want)
			return
		}
	}
}

func TestGaugesAreWhatIsSoWhenTheyAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := faultstore.New(memory.New(memory.Options{}), faultstore.Options{})
		tally := New(Options{})
		check := func(at time.Duration, want ...float64) {
			t.Helper()
			near(t, at, readings(t, tally, at, "workers", "lease_holding", "holder_known", "lease_held_seconds_total", "worker_healthy", "store_failing"), want...)
		}
		check(0)
		w := begin(t, tally, link, workerlease.Options{}, work)
		check(30*time.Second, 1, 0, -1, 0, 1, 0)
		check(70*time.Second, 1, 1, 1, 10, 1, 0)
		check(100*time.Second, 1, 1, 1, 40, 1, 0)
		check(119900*time.Millisecond, 1, 0, 1, 59.7, 1, 0) // past the last safe moment
		near(t, 0, readings(t, tally, 130*time.Second, "token"), float64(time.Date(2000, 1, 1, 0, 2, 0, 0, time.UTC).UnixMilli()))
		link.Break(faultstore.Down())
		time.Sleep(time.Minute)
		got := readings(t, tally, 4*time.Minute+30*time.Second, "lease_holding", "holder_known", "worker_healthy", "store_failing", "token")
		if got[0] != 0 || got[1] != 0 || got[2] != 0 || got[3] < 3 || got[4] == 0 {
			t.Errorf("in an outage: %v, want no holder, not healthy, more than 3 failures, and the token as before", got)
		}
		link.Mend()
		near(t, 0, readings(t, tally, 7*time.Minute+30*time.Second, "lease_holding", "holder_known", "worker_healthy", "store_failing"), 1, 1, 1, 0)
		end(t, w)
		near(t, 0, readings(t, tally, 8*time.Minute, "workers", "lease_holding", "worker_healthy"), 0, -1, -1)
	})
}

func TestTheClockIsReadWhenItsGaugesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := New(Options{})
		ahead := memory.New(memory.Options{Clock: clocks.Skewed(clock.New(), 5*time.Second)})
		begin(t, tally, ahead, workerlease.Options{}, work)
		near(t, 0, readings(t, tally, 20*time.Second, "clock_offset_seconds", "clock_sample_age_seconds", "clock_uncertainty_seconds"), -5, 20, 0)
		near(t, 0, readings(t, tally, 30*time.Second, "clock_offset_seconds", "clock_sample_age_seconds", "clock_uncertainty_seconds"), -5, 30, 0)
	})
}

func TestOutcomesOfTasksAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := New(Options{})
		slot := 0
		begin(t, tally, memory.New(memory.Options{}), workerlease.Options{Job: &workerlease.Job{MaxAttempts: 1}, WaitForBoundary: true}, func(ctx context.Context, _ workerlease.Lease) error {
			slot++
			switch slot {
			case 1:
				time.Sleep(5 * time.Second)
				return nil
			case 2:
				return errors.New("no")
			}
			panic("no")
		})
		check := func(at time.Duration, want ...float64) {
			t.Helper()
			near(t, at, readings(t, tally, at, "tasks_succeeded_total", "slots_done_total", "slot_done", "holder_known", "task_last_success_timestamp_seconds"), want...)
		}
		check(50*time.Second, 0, 0, 0, -1, -1)
		success := float64(time.Date(2000, 1, 1, 0, 1, 5, 0, time.UTC).Unix())
		check(90*time.Second, 1, 1, 1, 0, success)
		check(3*time.Minute+30*time.Second, 1, 1, 0, 0, success)
		got := sums(tally)
		if got["tasks_failed_total/error"] != 1 || got["tasks_failed_total/panic"] != 1 || got["task_duration_seconds"] != 1 {
			t.Errorf("counted %v, want an error, a panic, and a duration", got)
		}
	})
}

func TestAPauseIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally, ledger := New(Options{}), memory.New(memory.Options{})
		begin(t, tally, ledger, workerlease.Options{}, work)
		near(t, 0, readings(t, tally, 90*time.Second, "worker_paused", "holder_known"), 0, 1)
		if _, err := operate.On(ledger).Give(t.Context(), operate.Order{Kind: store.OrderPause, WorkerType: "job", For: 3 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		near(t, 0, readings(t, tally, 150*time.Second, "worker_paused", "holder_known"), 1, 0)
		near(t, 0, readings(t, tally, 5*time.Minute+30*time.Second, "worker_paused", "holder_known"), 0, 1)
		if got := sums(tally)["slots_missed_total/paused"]; got < 1 {
			t.Errorf("slots_missed_total by a pause is %v, want at least 1", got)
		}
	})
}

func TestWorkersThatHaveEndedAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := New(Options{})
		for range 100 {
			end(t, begin(t, tally, memory.New(memory.Options{}), workerlease.Options{}, work))
			synctest.Wait()
		}
		if n := len(tally.workers); n > 16 {
			t.Errorf("%d of 100 workers that have ended are kept although nothing is read, want 16 at most", n)
		}
		if tally.Read(); len(tally.workers) != 0 {
			t.Errorf("%d workers that have ended are kept after a reading", len(tally.workers))
		}
	})
}
