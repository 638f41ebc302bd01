package clocks

import (
	"context"
	"time"
)

// patience is how long, in real time, user code may keep the clock waiting.
const patience = time.Minute

// Advance moves the clock by d, which may be 0: then it only settles.
//
// The clock stops, in order, at the time of every timer, ticker and context of this
// clock, the workers' and the test's. At each stop the watched clients settle: ledger
// operations return, LeaseAllocated is called and returns or calls Done of its context,
// and both callbacks of a lease that ended return. Other goroutines run until they
// block, if no goroutine of the process is busy for more than 20 ms of real time (in a
// bubble, always). Data that they share with the test still needs a lock.
//
// The test fails at once if a client hasn't settled after a minute of real time. The usual
// reason is a callback that waits for something other than its context: for this clock,
// which can't move meanwhile, or for the test. Don't call Advance from a callback.
func (f *Fake) Advance(t T, d time.Duration) {
	t.Helper()
	f.AdvanceTo(t, f.Now().Add(d))
}

// AdvanceTo is Advance to a time, which must not have passed.
func (f *Fake) AdvanceTo(t T, to time.Time) {
	t.Helper()
	if !f.moving.TryLock() {
		t.Fatalf("advance to %s: the clock is being moved already: move it from one goroutine, and not from a callback", show(to))
	}
	defer f.moving.Unlock()
	if now := f.Now(); to.Before(now) {
		t.Fatalf("advance to %s: it is %s already: the clock can't go back", show(to), show(now))
	}
	// A bubble waits here for all of its goroutines; the mock's moves wait as long.
	time.Sleep(lookGap)
	f.settle(t)
	for {
		next, found := f.due.next()
		if !found || next.After(to) {
			break
		}
		if now := f.Now(); next.Before(now) {
			next = now
		}
		f.mock.Set(next)
		f.settle(t)
	}
	if f.Now().Before(to) {
		f.mock.Set(to)
		f.settle(t)
	}
}

// settle waits until everything that is due has happened.
func (f *Fake) settle(t T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f.mu.Lock()
	all := f.watched[:len(f.watched):len(f.watched)]
	f.mu.Unlock()
	for {
		idle()
		if settled(all) {
			return
		}
		for _, w := range all {
			if _, err := w.Settle(ctx); err != nil {
				t.Fatalf("at %s of the fake clock, nothing may happen until it moves, but after %v of real time there still is %s",
					show(f.Now()), patience, w.roll.trouble())
			}
		}
	}
}

// over is a context that has ended: Settle doesn't wait with it.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// settled reports whether all are settled right now. They are asked again after
// goroutines that one of them has started, or that have woken up, have run.
func settled(all []watched) bool {
	for _, w := range all {
		if _, err := w.Settle(over); err != nil {
			return false
		}
	}
	return true
}

func show(t time.Time) string { return t.Format(time.RFC3339Nano) }
