package workerlease_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
)

// lateRechecks is a clock whose machine is so busy that the goroutines of timers of a second
// begin late, until they are told to keep up. It counts them.
type lateRechecks struct {
	*clocks.Suspendable
	late  atomic.Int64
	calls atomic.Int64
}

func (c *lateRechecks) AfterFunc(d time.Duration, f func()) *clock.Timer {
	if d == time.Second {
		c.calls.Add(1)
		return c.Suspendable.AfterFunc(d, func() {
			time.Sleep(time.Duration(c.late.Load()))
			f()
		})
	}
	return c.Suspendable.AfterFunc(d, f)
}

// A recheck that is held up while the last lease ends and the next begins isn't repeated
// besides the next lease's own.
func TestALateRecheckIsNotRepeatedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &lateRechecks{Suspendable: clocks.NewSuspendable(clock.New())}
		start(t, setup{ledger: memory.New(memory.Options{}), clock: c, Options: workerlease.Options{LeaseInterval: 10 * time.Second}})
		for i := range 10 {
			at(time.Duration(i)*10*time.Second + 17*time.Second)
			c.late.Store(int64(4500 * time.Millisecond))
			at(time.Duration(i)*10*time.Second + 22*time.Second + 500*time.Millisecond)
			c.late.Store(0)
		}
		at(125 * time.Second)
		before := c.calls.Load()
		at(128 * time.Second)
		if n := c.calls.Load() - before; n > 4 {
			t.Errorf("a lease was looked at %d times in 3 s, want once a second", n)
		}
	})
}
