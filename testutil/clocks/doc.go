// Package clocks lets tests decide what time it is: a fake clock that knows when
// leases have settled, and clocks that are wrong on purpose.
//
// # Inside a bubble
//
// Most tests need nothing of this package. In a bubble of testing/synctest time
// is fake already, and every goroutine is waited for:
//
//	synctest.Test(t, func(t *testing.T) {
//		client := workerlease.NewClient(ledger, workerlease.ClientOptions{Clock: clock.New()})
//		_, err := client.StartLeasing(t.Context(), options, callbacks)
//		…
//		time.Sleep(6 * time.Minute) // past the next boundary, in no time
//		synctest.Wait()             // until everybody has done what was due
//	})
//
// The clock must be named, as the default one reads the machine's boot time,
// which no bubble fakes.
//
// # Outside
//
// A bubble can't hold network connections, other processes, or goroutines that
// were there before it. Where it can't be used, use a [Fake]:
//
//	f := clocks.NewFake(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
//	client := f.NewClient(memory.New(memory.Options{Clock: f}), workerlease.ClientOptions{})
//	_, err := client.StartLeasing(t.Context(), options, callbacks)
//	…
//	f.Advance(t, 6*time.Minute)
//
// Advance stops at every moment for which anybody has set a timer, and lets all
// that is due there happen before it goes on. When it returns, LeaseAllocated has
// been called where it was due, and has returned or waits for its context to end;
// where a lease ended, both callbacks have returned. The mock of
// github.com/benbjohnson/clock, on which a Fake is built, waits for one
// millisecond instead and hopes.
//
// The store must be on the same clock: its time is what slots are cut from.
//
// A worker knows store time with an uncertainty, and works only when it is sure.
// With default options it is allocated up to 10 ms after the boundary, and
// expired up to 260 ms before the end. So don't look right at a boundary: advance
// into the slot, or past it.
//
// # Wrong clocks
//
// [Skewed] tells the wrong time of day, [Drifting] is too fast or too slow, and
// [Suspendable] belongs to a machine that is put to sleep. They work on any
// clock: clock.New() in a bubble, a Fake outside, the real one. A worker must
// take no harm from any of them.
//
// What such a clock sends on the channels of timers and tickers is the time of
// the clock below it, and what is passed to the Reset method of its timers and
// tickers is measured by the clock below it: both are beyond the reach of a type
// outside of package clock. Ask Now, and make new timers.
package clocks
