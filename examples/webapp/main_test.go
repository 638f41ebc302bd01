package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

func TestProbesTellAStoreThatIsDownFromAJobThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faultstore.New(memory.New(memory.Options{}), faultstore.Options{})
		ledger.Break(faultstore.Down())
		end := make(chan struct{})
		worker, err := workerlease.NewClient(ledger, workerlease.ClientOptions{}).StartLeasing(t.Context(),
			workerlease.Options{WorkerType: "sitemap", InstanceID: "<anna>", LeaseInterval: time.Minute},
			workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
				<-ctx.Done()
				if l.Slot.Start.Minute() == 1 {
					<-end // It hangs.
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		site := handler(worker)
		expect := func(when string, health, live int) {
			t.Helper()
			for path, want := range map[string]int{"/healthz": health, "/livez": live, "/": http.StatusOK} {
				r := httptest.NewRecorder()
				site.ServeHTTP(r, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
				if r.Code != want {
					t.Errorf("%s, GET %s = %d %q, want %d", when, path, r.Code, r.Body, want)
				}
				if held := strings.Contains(r.Body.String(), "by: &lt;anna&gt;."); path == "/" && (when == "at the start" && held || when == "holding" && !held) {
					t.Errorf("%s, GET / = %q", when, r.Body)
				}
			}
		}
		const ok, bad = http.StatusOK, http.StatusServiceUnavailable
		synctest.Wait()
		expect("at the start", bad, ok) // The store has not answered yet.
		ledger.Mend()
		time.Sleep(time.Second)
		expect("when the store has answered", ok, ok)
		time.Sleep(90 * time.Second)
		expect("holding", ok, ok)
		time.Sleep(40 * time.Second)
		expect("while the job hangs", bad, bad)
		close(end)
		synctest.Wait()
		expect("when it has returned", ok, ok)
		ledger.Break(faultstore.Down())
		time.Sleep(5 * time.Minute)
		expect("without a store", bad, ok)
		ledger.Mend()
		time.Sleep(time.Minute)
		expect("holding", ok, ok)
		if err := worker.StopLeasing(t.Context()); err != nil {
			t.Error(err)
		}
		if err := ledger.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
