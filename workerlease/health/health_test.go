package health_test

import (
	"context"
	"encoding/json"
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
		}
		const ok, down = http.StatusOK, http.StatusServiceUnavailable
		check(time.Second, a, ok, ok, "degraded", "knows of no holder")
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
