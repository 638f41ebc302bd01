package etcd

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/workerlease"
)

// Two workers with handles of their own share the slots: each is had by one, and no two work at once. It logs how
// uncertain the time was in the end, for the figures in doc.go.
func TestWorkersLeadOneAtATime(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds of real time")
	}
	t.Parallel()
	uri := fresh(etcdpeer.Shared(t)) + "?oneMember=true"
	type shift struct {
		lease    workerlease.Lease
		from, to time.Time
	}
	var mu sync.Mutex
	var last shift
	done := make(chan bool, 100)
	for range 2 {
		o := workerlease.Options{WorkerType: "job", LeaseInterval: 3 * time.Second, JoinMidSlot: true}
		w, err := workerlease.StartLeasing(t.Context(), opened(t, Options{URI: uri}), o, workerlease.Callbacks{
			LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
				s := shift{lease: l, from: time.Now()}
				for ctx.Err() == nil && l.Valid() {
					s.to = time.Now()
					time.Sleep(5 * time.Millisecond)
				}
				mu.Lock()
				defer mu.Unlock()
				if last.lease.Token >= l.Token || s.from.Before(last.to) {
					t.Errorf("token %d from %v after token %d until %v", l.Token, s.from, last.lease.Token, last.to)
				}
				last = s
				done <- true
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			t.Logf("store time is known to ±%v", w.Status().Uncertainty)
			_ = w.StopLeasing(context.WithoutCancel(t.Context()))
		})
	}
	for range 3 {
		select {
		case <-done:
		case <-time.After(60 * time.Second):
			t.Fatal("no three leases within a minute each")
		}
	}
}
