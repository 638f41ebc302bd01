package workerlease_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	probes "github.com/slotlease/slotlease/workerlease/health"
)

// A worker waits for its observer, as for a log that nobody reads. All who ask are shown that, and
// nobody is shown that it holds a lease which has lapsed.
func TestAWorkerThatIsStuckShowsIt(t *testing.T) {
	for _, in := range []string{"the Observer or Logger", "Callbacks.Error", "an operation on the store"} {
		bubble(t, in, func(t *testing.T) {
			free := make(chan struct{})
			var armed atomic.Bool
			block := func(which string) {
				if which == in && armed.CompareAndSwap(true, false) {
					<-free
				}
			}
			_, link := cut(t)
			var stuck []event.Stuck
			c := workerlease.NewClient(&hooked{Ledger: link, beforeAppend: func(store.Record) { block("an operation on the store") }}, workerlease.ClientOptions{
				Clock: clock.New(),
				Observer: event.ObserverFunc(func(e event.Event) {
					if e, ok := e.(event.Stuck); ok {
						stuck = append(stuck, e)
					}
					block("the Observer or Logger")
				}),
			})
			w, err := c.StartLeasing(t.Context(), parted("a", 0, 20*time.Second), workerlease.Callbacks{
				LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) { <-ctx.Done() },
				Error:          func(error) { block("Callbacks.Error") },
			})
			must(t, err)
			check := func(when time.Duration, holds, alive bool, why string) {
				t.Helper()
				at(when)
				s, report, live := w.Status(), probes.Of(w), httptest.NewRecorder()
				probes.Live(w).ServeHTTP(live, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
				if s.Holding != holds || w.IsHolder() != holds || report.Holds != holds || s.Alive() != alive || s.Healthy() != alive || (live.Code == http.StatusOK) != alive || !strings.Contains(report.Reason, why) {
					t.Errorf("at %v: %s; IsHolder() = %v, liveness %d, %+v; want holding %v, alive %v: %s", when, s, w.IsHolder(), live.Code, report, holds, alive, why)
				}
			}
			check(6*time.Minute, true, true, "holds the slot")
			armed.Store(true)
			if in == "Callbacks.Error" {
				link.Break(faultstore.Down())
			}
			check(6*time.Minute+50*time.Second, false, false, in+" has not returned")
			link.Mend()
			close(free)
			check(11*time.Minute, true, true, "holds the slot")
			must(t, w.StopLeasing(t.Context()))
			if in == "an operation on the store" {
				return
			}
			if len(stuck) != 1 || stuck[0].In != in || stuck[0].Took < 20*time.Second || stuck[0].Took > 50*time.Second {
				t.Errorf("events %+v, want one of less than 50 s in %s", stuck, in)
			}
		})
	}
}

// booted is a clock with boot time, which goes on while the machine is suspended.
type booted struct {
	clock.Clock
	asleep *atomic.Int64
}

func (b booted) Boottime() time.Duration { return since(b.Now()) + time.Duration(b.asleep.Load()) }

func TestAWorkerThatWaitsOrWasSuspendedIsNotStuck(t *testing.T) {
	for _, boot := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := clock.New()
			var asleep atomic.Int64
			if boot {
				c = booted{c, &asleep}
			}
			w := start(t, setup{clock: c, Options: workerlease.Options{LeaseInterval: 24 * time.Hour}})
			for i := range 1000 {
				at(time.Duration(i) * 7 * time.Minute)
				if i%100 == 0 {
					asleep.Add(int64(time.Hour))
				}
				if s := w.Status(); s.Stuck != 0 {
					t.Fatalf("boot time %v: after %v: stuck for %v", boot, since(time.Now()), s.Stuck)
				}
			}
		})
	}
}

// Who asks first thing in LeaseAllocated is told the same by all.
func TestALeaseIsHeldFromTheBeginningOfItsCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var self atomic.Pointer[worker]
		n := 0
		self.Store(start(t, setup{
			Options: workerlease.Options{LeaseInterval: time.Second},
			work: func(_ context.Context, l workerlease.Lease) {
				n++
				if w, s := self.Load(), self.Load().Status(); !w.IsHolder() || !s.Holding || !s.Running || s.Lease != l || s.Allocated != n {
					t.Errorf("in LeaseAllocated of %v: IsHolder() = %v, %+v", l.Slot, w.IsHolder(), s)
				}
			},
		}))
		at(time.Minute)
		synctest.Wait()
	})
}
