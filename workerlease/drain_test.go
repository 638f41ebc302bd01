package workerlease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	probes "github.com/slotlease/slotlease/workerlease/health"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// leaving is a worker whose runs take three hours in slots of one, and which is told to stop half an hour after the first began.
func leaving(t *testing.T, ledger store.Ledger, o workerlease.Options) (w *workerlease.WorkerLease, causes *[]error, stopped chan error) {
	t.Helper()
	causes, stopped = &[]error{}, make(chan error, 1)
	w, err := workerlease.StartTask(t.Context(), ledger, o, func(ctx context.Context, _ workerlease.Lease) error {
		select {
		case <-time.After(3 * time.Hour):
			*causes = append(*causes, nil)
			return nil
		case <-ctx.Done():
			*causes = append(*causes, context.Cause(ctx))
			return context.Cause(ctx)
		}
	})
	must(t, err)
	at(30 * time.Minute)
	go func() { stopped <- w.StopLeasing(context.Background()) }()
	return w, causes, stopped
}

func draining(timeout time.Duration) workerlease.Options {
	o := perSlot("a", 0)
	o.LeaseInterval, o.DrainTimeout = time.Hour, timeout
	return o
}

func TestAWorkerThatIsToldToStopFinishesItsRun(t *testing.T) {
	bubble(t, "and claims nothing more", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		w, causes, stopped := leaving(t, ledger.Handle(), draining(12*time.Hour))
		at(2 * time.Hour)
		if st, why := w.Status(), probes.Of(w).Reason; !st.Draining || !strings.Contains(st.String(), "is told to stop") || !strings.Contains(why, "is told to stop") {
			t.Errorf("meanwhile it says %q, and that it %s", st, why)
		}
		must(t, <-stopped)
		if ended := time.Since(t0); ended < 3*time.Hour || ended > 3*time.Hour+time.Minute {
			t.Errorf("it stopped after %v, want when its run of 3h has ended", ended)
		}
		if len(*causes) != 1 || (*causes)[0] != nil {
			t.Errorf("runs ended by %v, want one, by itself", *causes)
		}
		if head := newest(t, ledger); head.Kind != store.KindRelease || head.DoneUntil.IsZero() {
			t.Errorf("the head is %+v, want the rest released, and the slot done", head)
		}
		j := &job{}
		runsAtOnce(t, ledger.Handle(), perSlot("b", 0), j.run)
		at(3*time.Hour + 10*time.Minute)
		if len(j.calls) == 0 {
			t.Error("nobody has the slots after it")
		}
	})
	bubble(t, "but no longer than its time-out", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		_, causes, stopped := leaving(t, ledger.Handle(), draining(10*time.Minute))
		must(t, <-stopped)
		if ended := time.Since(t0); ended < 40*time.Minute || ended > 41*time.Minute {
			t.Errorf("it stopped after %v, want after 30m + 10m", ended)
		}
		if len(*causes) != 1 || !errors.Is((*causes)[0], workerlease.ErrStopped) {
			t.Errorf("runs ended by %v, want one, by ErrStopped", *causes)
		}
		if head := newest(t, ledger); head.Kind != store.KindRelease || head.Spared != 1 {
			t.Errorf("the head is %+v, want a release, and an attempt that doesn't count", head)
		}
	})
	bubble(t, "unless it is to stop now", func(t *testing.T) {
		w, causes, stopped := leaving(t, memory.New(memory.Options{}), draining(12*time.Hour))
		at(35 * time.Minute)
		must(t, w.StopNow(t.Context()))
		must(t, <-stopped)
		if ended := time.Since(t0); ended > 36*time.Minute || len(*causes) != 1 || !errors.Is((*causes)[0], workerlease.ErrStopped) {
			t.Errorf("it stopped after %v, its runs by %v, want ErrStopped after 35m", ended, *causes)
		}
	})
	bubble(t, "also when its context ends", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		made := false
		go func() {
			ended <- workerlease.Run(ctx, ledger.Handle(), draining(12*time.Hour), func(ctx context.Context, _ workerlease.Lease) error {
				time.Sleep(2 * time.Hour)
				made = ctx.Err() == nil
				return nil
			})
		}()
		at(time.Minute)
		cancel()
		must(t, <-ended)
		if !made || time.Since(t0) > 2*time.Hour+time.Minute {
			t.Errorf("made: %v, after %v, want at once after the run of 2h", made, time.Since(t0))
		}
	})
	bubble(t, "at once if none is under way", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		w, err := workerlease.StartTask(t.Context(), ledger.Handle(), draining(12*time.Hour), func(context.Context, workerlease.Lease) error { return nil })
		must(t, err)
		at(time.Hour - time.Second) // It has won the next slot.
		must(t, w.StopLeasing(t.Context()))
		if took := time.Since(t0); took > time.Hour {
			t.Errorf("it stopped after %v", took)
		}
		if head := newest(t, ledger); head.Kind == store.KindGrant {
			t.Errorf("the head is %+v, want the next slot given back", head)
		}
	})
	bubble(t, "and that of a trigger", func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		made := make(chan bool, 1)
		w, err := workerlease.StartTask(t.Context(), ledger.Handle(), draining(12*time.Hour), func(ctx context.Context, l workerlease.Lease) error {
			if l.Triggered {
				time.Sleep(10 * time.Minute)
				made <- ctx.Err() == nil
			}
			return nil
		})
		must(t, err)
		at(5 * time.Minute)
		give(t, ledger, operate.Order{Kind: store.OrderTrigger, WorkerType: "job"})
		at(10 * time.Minute)
		must(t, w.StopLeasing(t.Context()))
		if !<-made {
			t.Error("its run was cut")
		}
	})
}
