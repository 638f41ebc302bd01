// Package clocks lets tests control time, with a fake clock that knows when leases
// have settled, and clocks that are wrong on purpose.
//
// # Inside a bubble
//
// Most tests don't need this package. In a bubble of testing/synctest, time is fake
// already, and the test can wait for every goroutine:
//
//	synctest.Test(t, func(t *testing.T) {
//		client := workerlease.NewClient(ledger, workerlease.ClientOptions{})
//		_, err := client.StartLeasing(t.Context(), options, callbacks)
//		…
//		time.Sleep(6 * time.Minute) // past the next boundary, in no time
//		synctest.Wait()             // until all goroutines have done their work
//	})
//
// Make the client inside the bubble: its default clock is then the bubble's.
//
// # Outside
//
// A bubble can't contain network connections, other processes, or goroutines that
// were started before it. For these, use a [Fake]:
//
//	f := clocks.NewFake(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
//	client := f.NewClient(memory.New(memory.Options{Clock: f}), workerlease.ClientOptions{})
//	_, err := client.StartLeasing(t.Context(), options, callbacks)
//	…
//	f.Advance(t, 6*time.Minute)
//
// Advance stops at the time of every timer, and continues when everything due at
// that time has happened. When it returns, each LeaseAllocated that was due has been
// called, and has returned or waits for its context to end; for each lease that
// ended, both callbacks have returned. The mock of github.com/benbjohnson/clock, on
// which a Fake is built, just sleeps for a millisecond instead.
//
// The store must use the same clock, because slots are intervals of store time.
//
// A worker knows store time with some uncertainty, and works only while it is
// certain. With default options its lease is allocated up to 10 ms after the
// boundary, and expires up to 260 ms before the end. So don't check right at a
// boundary: advance into the slot, or past it.
//
// # Wrong clocks
//
// [Skewed] shows a wrong time of day, [Drifting] is too fast or too slow, and
// [Suspendable] belongs to a machine that is suspended. Each wraps another clock:
// clock.New() in a bubble, a Fake outside, or the real one. A worker must stay safe
// with all of them.
//
// The timers and tickers of such a clock send the time of the wrapped clock on their
// channels, and their Reset methods measure by the wrapped clock; a type outside
// package clock can't change that. Call Now instead of using the sent time, and make
// new timers instead of resetting.
package clocks
