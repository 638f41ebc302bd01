package workerlease_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// many is the number of workers on one client.
const many = 200

// lateness notes when each worker type's leases begin and end, since the bubble began.
type lateness struct {
	mu           sync.Mutex
	began, ended map[string][]time.Duration
}

// throng starts workers of many types on one client. Each has one lease after the other.
func throng(t *testing.T, client *workerlease.Client) (l *lateness, stop func()) {
	t.Helper()
	l = &lateness{began: map[string][]time.Duration{}, ended: map[string][]time.Duration{}}
	var workers []*workerlease.WorkerLease
	for i := range many {
		w, err := client.StartLeasing(t.Context(), workerlease.Options{WorkerType: fmt.Sprintf("type-%03d", i)}, workerlease.Callbacks{
			LeaseAllocated: func(_ context.Context, lease workerlease.Lease) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.began[lease.WorkerType] = append(l.began[lease.WorkerType], time.Since(t0))
			},
			LeaseExpired: func(lease workerlease.Lease, _ workerlease.Reason) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.ended[lease.WorkerType] = append(l.ended[lease.WorkerType], time.Since(t0))
			},
		})
		must(t, err)
		workers = append(workers, w)
	}
	return l, func() {
		for _, w := range workers {
			must(t, w.StopLeasing(context.Background()))
		}
	}
}

// onTime checks that all worker types but one had a lease in each of three slots, from its
// beginning to the last safe moment.
func (l *lateness) onTime(t *testing.T, but string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range many {
		name := fmt.Sprintf("type-%03d", i)
		if name == but {
			continue
		}
		began, ended := l.began[name], l.ended[name]
		if len(began) < 3 || len(ended) < 3 {
			t.Fatalf("%s had %d leases, of which %d ended, want 3", name, len(began), len(ended))
		}
		for slot := range 3 {
			start := time.Duration(slot+1) * 5 * time.Minute
			if late := began[slot] - start; late < 0 || late > time.Second {
				t.Errorf("%s: the lease of slot %d began %v after its boundary", name, slot, late)
			}
			if early := start + 5*time.Minute - ended[slot]; early < 250*time.Millisecond || early > 2*time.Second {
				t.Errorf("%s: the lease of slot %d ended %v before its slot", name, slot, early)
			}
		}
	}
}

// One worker's observer holds it for a minute at each event. None of the others is late.
func TestAStuckObserverDelaysNoOtherWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stuck = "type-007"
		client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{
			Observer: event.ObserverFunc(func(e event.Event) {
				if c, ok := e.(event.Claimed); ok && c.Worker.WorkerType == stuck {
					time.Sleep(time.Minute)
				}
				if a, ok := e.(event.Allocated); ok && a.Worker.WorkerType == stuck {
					time.Sleep(10 * time.Minute)
				}
			}),
		})
		l, stop := throng(t, client)
		at(21 * time.Minute)
		l.onTime(t, stuck)
		l.mu.Lock()
		began := len(l.began[stuck])
		l.mu.Unlock()
		if began == 0 || began == 3 {
			t.Errorf("the stuck worker had %d leases of 3: its observer did not hold it", began)
		}
		stop()
	})
}

func TestAnIdleWorkerKeepsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{})
		before := bubbled()
		l, stop := throng(t, client)
		at(22 * time.Minute)
		if n := bubbled() - before; before < 1 || n != 0 {
			t.Errorf("%d workers that wait keep %d goroutines, want none", many, n)
		}
		l.onTime(t, "")
		stop()
		synctest.Wait()
		if n := bubbled() - before; n != 0 {
			t.Errorf("%d goroutines are left of workers that were stopped", n)
		}
	})
}

// Many goroutines stop, ask and wake one worker at once, around the end of its lease.
func TestAWorkerThatIsCalledFromEverywhereEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for round := range 20 {
			ledger := memory.New(memory.Options{})
			client := workerlease.NewClient(ledger, workerlease.ClientOptions{})
			var mu sync.Mutex
			began, expired := 0, 0
			w, err := client.StartLeasing(t.Context(), workerlease.Options{WorkerType: "job", LeaseInterval: 10 * time.Second},
				workerlease.Callbacks{
					LeaseAllocated: func(context.Context, workerlease.Lease) { mu.Lock(); began++; mu.Unlock() },
					LeaseExpired:   func(workerlease.Lease, workerlease.Reason) { mu.Lock(); expired++; mu.Unlock() },
				})
			must(t, err)
			time.Sleep(25*time.Second - time.Since(t0)%(10*time.Second) + time.Duration(round-10)*10*time.Millisecond)
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					_ = w.Status()
					if err := w.StopLeasing(context.Background()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			<-w.Done()
			mu.Lock()
			if began == 0 || began != expired {
				t.Errorf("round %d: %d leases began, and %d ended", round, began, expired)
			}
			mu.Unlock()
			if n := ofKind(t, ledger, store.KindRelease); n != 1 {
				t.Errorf("round %d: %d releases, want one", round, n)
			}
		}
	})
}

// The end of a context stops a worker on a goroutine of its own, which may be faster than the
// one that starts the worker. Which one is differs from round to round.
func TestAContextThatHasEndedEndsAWorkerThatStarts(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	end()
	client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{})
	for range 1000 {
		w, err := client.StartLeasing(ctx, workerlease.Options{WorkerType: "job"}, workerlease.Callbacks{
			LeaseAllocated: func(context.Context, workerlease.Lease) { t.Error("a worker that was stopped got a lease") },
		})
		must(t, err)
		<-w.Done()
	}
}

// An observer that calls FailNow of a test ends the goroutine that it is called on.
func TestAnObserverThatEndsItsGoroutineEndsItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := bubbled()
		client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{
			Observer: event.ObserverFunc(func(event.Event) { runtime.Goexit() }),
		})
		w, err := client.StartLeasing(t.Context(), workerlease.Options{WorkerType: "job"}, workerlease.Callbacks{
			LeaseAllocated: func(context.Context, workerlease.Lease) {},
		})
		must(t, err)
		ctx, end := context.WithTimeout(context.Background(), time.Minute)
		defer end()
		must(t, w.StopLeasing(ctx))
		end()
		synctest.Wait()
		if n := bubbled() - before; n != 0 {
			t.Errorf("the worker has left %d goroutines", n)
		}
	})
}
