package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/health"
)

// probed asks a handler, and returns its code and what it says of the only worker.
func probed(t *testing.T, h http.Handler) (code int, state, reason string) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	var body struct {
		State   string `json:"state"`
		Workers []struct{ State, Reason string }
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || len(body.Workers) != 1 || body.State != body.Workers[0].State {
		t.Fatalf("body %s, %v", rec.Body, err)
	}
	return rec.Code, body.State, body.Workers[0].Reason
}

// start starts a worker with slots of a minute, which is stopped with the test.
func start(t *testing.T, ledger store.Ledger, name string, priority int, work func(context.Context)) *workerlease.WorkerLease {
	t.Helper()
	w, err := workerlease.NewClient(ledger, workerlease.ClientOptions{}).StartLeasing(t.Context(),
		workerlease.Options{WorkerType: "job", InstanceID: name, Priority: priority, LeaseInterval: time.Minute},
		workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) { work(ctx) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = w.StopLeasing(ctx)
	})
	return w
}

func TestProbesSayHowAWorkerIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := faultstore.New(memory.New(memory.Options{}), faultstore.Options{})
		hang := make(chan struct{})
		var hangs atomic.Bool
		a := start(t, link, "a", 0, func(ctx context.Context) {
			<-ctx.Done()
			if hangs.Load() {
				<-hang
			}
		})
		b := start(t, link, "b", 1, func(ctx context.Context) { <-ctx.Done() })
		check := func(after time.Duration, w *workerlease.WorkerLease, live, ready int, state, reason string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if code, _, _ := probed(t, health.Live(w)); code != live {
				t.Errorf("liveness: %d, want %d", code, live)
			}
			if code, s, why := probed(t, health.Ready(w)); code != ready || s != state || !strings.Contains(why, reason) {
				t.Errorf("readiness: %d, %s: %s, want %d, %s: … %s", code, s, why, ready, state, reason)
			}
			if r := health.Of(w); r.State == health.Unhealthy && r.Holder != "" {
				t.Errorf("%s: it says that %s holds the lease, and can't tell", reason, r.Holder)
			}
		}
		const ok, down = http.StatusOK, http.StatusServiceUnavailable
		check(time.Second, a, ok, ok, "healthy", "waits for the first slot, which begins at ")
		check(time.Minute, a, ok, ok, "healthy", "holds the slot")
		check(0, b, ok, ok, "healthy", "a holds the lease")
		link.Break(faultstore.Down())
		check(time.Minute, b, ok, down, "unhealthy", "times in a row")
		link.Mend()
		check(2*time.Minute, b, ok, ok, "healthy", "a holds the lease")
		hangs.Store(true)
		check(time.Minute, a, down, down, "unhealthy", "has not returned")
		close(hang)
		hangs.Store(false)
		if err := b.StopLeasing(t.Context()); err != nil {
			t.Error(err)
		}
		check(0, b, ok, down, "unhealthy", "has stopped")
	})
}

// Between two nightly runs nobody holds anything, and nothing is wrong.
func TestAWorkerWhoseJobIsDoneIsHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w, err := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{}).StartTask(ctx,
			workerlease.Options{WorkerType: "job", LeaseInterval: 24 * time.Hour, WaitForBoundary: true, Job: &workerlease.Job{}},
			func(context.Context, workerlease.Lease) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if code, state, why := probed(t, health.Ready(w)); code != http.StatusOK || state != "healthy" || why != "waits for its slot, which begins at 2000-01-02T00:00:00.000Z" {
			t.Errorf("before its first slot, readiness is %d, %s: %s, want when that begins", code, state, why)
		}
		time.Sleep(30 * time.Hour)
		for range 100 {
			time.Sleep(13 * time.Minute)
			synctest.Wait()
			if w.Status().Contending.Start.Sub(w.Status().StoreTime) < time.Minute {
				continue // The next slot is about to be claimed.
			}
			if code, state, why := probed(t, health.Ready(w)); code != http.StatusOK || state != "healthy" || !strings.Contains(why, "the job of the slot is done") {
				t.Fatalf("%v: readiness is %d, %s: %s, want that the job of the slot is done", w.Status().StoreTime, code, state, why)
			}
		}
		cancel()
		_ = w.StopLeasing(context.WithoutCancel(t.Context()))
	})
}

// A job that fails says nothing of its worker, until nobody has done it for longer than its schedule allows.
func TestAJobThatFailsIsOverdueInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w, err := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{}).StartTask(ctx,
			workerlease.Options{WorkerType: "job", LeaseInterval: time.Hour, WaitForBoundary: true, Job: &workerlease.Job{MaxAttempts: 1}},
			func(context.Context, workerlease.Lease) error { return errors.New("no report") })
		if err != nil {
			t.Fatal(err)
		}
		for at, want := range []string{
			65: "healthy: nobody runs the job, which becomes overdue at 2000-01-01T01:15:00.000Z",
			80: "degraded: nobody runs the job, which is overdue since 2000-01-01T01:15:00.000Z",
		} {
			time.Sleep(time.Minute)
			synctest.Wait()
			if code, state, why := probed(t, health.Ready(w)); want != "" && (code != http.StatusOK || state+": "+why != want) {
				t.Errorf("after %d min, readiness is %d, %s: %s, want %s", at+1, code, state, why, want)
			}
		}
		cancel()
		_ = w.StopLeasing(context.WithoutCancel(t.Context()))
	})
}

// A job whose run hangs is overdue, whoever holds its lease, by the time that metrics and /status name, too.
func TestAJobThatHangsIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w, err := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{}).StartTask(ctx,
			workerlease.Options{WorkerType: "job", LeaseInterval: time.Hour, WaitForBoundary: true, Job: &workerlease.Job{}},
			func(ctx context.Context, _ workerlease.Lease) error { <-ctx.Done(); return ctx.Err() })
		if err != nil {
			t.Fatal(err)
		}
		const slot = "[2000-01-01T01:00:00Z, 2000-01-01T02:00:00Z)"
		for _, want := range []struct {
			minute int
			text   string
		}{
			{90, "healthy: holds the slot " + slot},
			{150, "healthy: runs the job of the slot " + slot + ", which is over"},
			{190, "degraded: runs the job of the slot " + slot + ", which is over; the job is overdue since 2000-01-01T03:00:00.000Z"},
		} {
			time.Sleep(time.Until(time.Date(2000, 1, 1, 0, want.minute, 0, 0, time.UTC)))
			synctest.Wait()
			r, s := health.Of(w), w.Status()
			if text := r.State.String() + ": " + r.Reason; text != want.text || (r.State == health.Degraded) != (s.Overdue() > 0) {
				t.Errorf("after %d min: %s, overdue %v, want %s", want.minute, text, s.Overdue(), want.text)
			}
		}
		cancel()
		_ = w.StopLeasing(context.WithoutCancel(t.Context()))
	})
}
