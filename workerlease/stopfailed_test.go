package workerlease_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// When ctx ends and the release fails, the error is handed over before the worker may end:
// otherwise 1 of 30 was lost.
func TestAStopThatFailedIsAlwaysReported(t *testing.T) {
	for range 60 {
		synctest.Test(t, func(t *testing.T) {
			ledger := faulty(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			w := start(t, setup{ledger: ledger, ctx: ctx})
			at(6 * time.Minute)
			ledger.Break(faultstore.Down())
			cancel()
			<-w.Done()
			if n, reported := len(observed[workerlease.StopFailed](w)), w.count(workerlease.ErrNotReleased); n != 1 || reported != 1 {
				t.Errorf("%d events and %d errors of a stop that failed, want one each", n, reported)
			}
		})
	}
}

func TestAStopBeforeAnyLeaseSpeaksOfNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, nil)
		ledger.Break(faultstore.BlackHole(faultstore.Dropped))
		w := start(t, setup{ledger: ledger})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := w.StopLeasing(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, workerlease.ErrNotReleased) || !strings.Contains(err.Error(), "has not ended") {
			t.Errorf("StopLeasing() = %v, want the deadline, and no lease", err)
		}
	})
}

// A claim is for one slot: with RunMissed it would record the slot before as done, and
// nobody would run it.
func TestAClaimDoesNotMakeUpForAMissedSlot(t *testing.T) {
	_, err := workerlease.TryClaim(t.Context(), memory.New(memory.Options{}),
		workerlease.Options{WorkerType: "job", Job: &workerlease.Job{RunMissed: true}})
	if problems := workerlease.OptionErrors(err); len(problems) != 1 || problems[0].Field != "Job.RunMissed" {
		t.Errorf("TryClaim() = %v, want that Job.RunMissed is refused", err)
	}
}

func TestNoLoggerIsNoPanic(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var out strings.Builder
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	for _, o := range []workerlease.Observer{workerlease.LogTo(nil), workerlease.LogToSlog(nil)} {
		o.Observe(workerlease.Missed{})
	}
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("%d lines by the default logger, want that of LogToSlog(nil):\n%s", n, out.String())
	}
}
