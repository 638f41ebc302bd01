package beside

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/slotlease/slotlease/workerlease"
)

// A leader whose lease ends keeps the other lock until its code has returned, however long that takes.
func TestTheOtherLockIsKeptUntilTheCodeHasReturned(t *testing.T) {
	t.Run("client-go", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var shared leaseObject
			election := func(worker string) Election {
				return Election{leaderelection.LeaderElectionConfig{
					LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
					Lock: &leaseLock{lease: &shared, worker: worker},
				}}
			}
			expectKept(t, election("new"), election("old"))
		})
	})
	t.Run("what is watched", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l renewed
			expectKept(t, &l, &l)
		})
	})
}

// renewed is a lock for 3 s, as Redis renews one.
type renewed struct {
	sync.Mutex
	until time.Time
}

func (r *renewed) TryLock(ctx context.Context) (context.Context, func(), error) {
	if time.Now().Before(r.is()) {
		return nil, nil, nil
	}
	renew := func(context.Context) bool { r.set(time.Now().Add(3 * time.Second)); return true }
	renew(ctx)
	held, stop := watched(ctx, time.Second, renew)
	return held, func() { stop(); r.set(time.Time{}) }, nil
}

func (r *renewed) is() time.Time {
	r.Lock()
	defer r.Unlock()
	return r.until
}

func (r *renewed) set(until time.Time) {
	r.Lock()
	defer r.Unlock()
	r.until = until
}

// expectKept has a new leader take the lock, and stop within 10 s of the end of its lease. An old one may only have it then.
func expectKept(t *testing.T, lock, other Lock) {
	t.Helper()
	const stops = 10 * time.Second
	lease, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	var returned atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = Both(lock, time.Second, func(held context.Context, _ workerlease.Lease) error {
			<-held.Done()
			time.Sleep(stops)
			returned.Store(true)
			return nil
		})(lease, workerlease.Lease{})
	}()
	<-lease.Done()
	for {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		held, unlock, err := other.TryLock(ctx)
		if err == nil && held != nil {
			if !returned.Load() {
				t.Errorf("the old leader has the lock, and the code of the new one still runs")
			}
			unlock()
			stop()
			break
		}
		stop()
		time.Sleep(100 * time.Millisecond)
	}
	<-done
}
