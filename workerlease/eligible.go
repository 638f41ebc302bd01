package workerlease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// check is one call of Options.Eligible.
type check struct {
	began    time.Duration // the local reading
	cancel   context.CancelFunc
	returned chan struct{} // closed when the user's code has returned
	err      error         // readable then
}

// beginCheck calls Options.Eligible on a goroutine of its own. The answer comes in time, also if the
// user's code doesn't return: then it is an error. Until that code has returned, it isn't called again.
func (w *WorkerLease) beginCheck() {
	judged := func(err error) { w.post(arrival{event: machine.Judged{Err: err}}) }
	began := w.client.local()
	if before := w.checking.Load(); before != nil {
		judged(fmt.Errorf("the check has not returned for %v", round(began-before.began)))
		return
	}
	limited, cancel := w.client.clock.WithTimeout(w.base, w.options.EligibleTimeout)
	w.client.activity.add(w, 1)
	ctx := &watched{Context: context.WithValue(limited, scored{}, w), waiting: func() { w.client.activity.add(w, -1) }}
	k := &check{began: began, cancel: cancel, returned: make(chan struct{}), err: errors.New("the check ended its goroutine")}
	w.checking.Store(k)
	go func() {
		// Deferred, since user code may end its goroutine.
		defer cancel()
		defer close(k.returned)
		defer w.checking.Store(nil)
		if panicked := guarded("Eligible", func() { k.err = w.options.Eligible(ctx) }); panicked != nil {
			k.err = panicked
		}
	}()
	go func() {
		defer ctx.once.Do(ctx.waiting)
		<-limited.Done() // The check has returned, or its time is over.
		if errors.Is(limited.Err(), context.DeadlineExceeded) {
			judged(fmt.Errorf("the check took longer than %v", w.options.EligibleTimeout))
			return
		}
		<-k.returned
		judged(k.err)
	}()
}

// scored is the key of the worker that a check is asked for, for the sake of Score.
type scored struct{}

// endCheck closes w.done, once no code of the user's runs any more.
func (w *WorkerLease) endCheck() {
	k := w.checking.Load()
	if k == nil {
		close(w.done)
		return
	}
	k.cancel()
	go func() {
		<-k.returned
		close(w.done)
	}()
}

// Succeeded reports that the work under the lease has succeeded in this slot, for code of StartLeasing that
// keeps its lease nevertheless. It changes nothing, and is for those who observe: see TaskSucceeded. It says
// nothing of a lease that has ended.
func (l Lease) Succeeded() {
	if l.active != nil && l.active.lapsed() == 0 {
		w := l.active.w
		w.post(arrival{observed: []event.Event{event.TaskSucceeded{Worker: w.label(), Lease: l.active.lease().plain(), At: w.now().Mid()}}})
	}
}

// Progress reports that the work under the lease goes on: see Options.ProgressWithin. It reads only the
// local clock, so call it as often as you like. It says nothing of a lease that has ended.
func (l Lease) Progress() {
	if l.active != nil {
		l.active.progressed.Store(int64(l.active.w.client.local()))
	}
}
