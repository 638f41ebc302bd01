package workerlease_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// A worker that samples store time at the opening of claims, 10 s before the
// boundary, is sure of it to 10 ms (1000 ppm of 10 s) at the boundary.
const (
	lead   = 10 * time.Second
	margin = 250 * time.Millisecond
)

// truncated is how much earlier a lease may end than by a store that shows the time to
// the nanosecond: memory shows it to the microsecond, and what is known of it is rounded
// outwards a few times.
const truncated = time.Microsecond + 10*time.Nanosecond

// begin is when a lease is allocated whose holder last sampled lead before its
// start: when Earliest, which runs 1000 ppm slow, gets there.
func begin(boundary time.Duration) time.Duration {
	return boundary - lead + drifted(lead, -1e-3)
}

// finish is when a lease ends whose holder last sampled lead before its end:
// when Latest, which runs 1000 ppm fast, is the margin and 1 ms before the end.
func finish(boundary time.Duration) time.Duration {
	return boundary - lead + drifted(lead-margin-time.Millisecond, 1e-3)
}

// endsAt checks the end of a lease. A timer that comes a nanosecond early is set
// again for 1 ms, which is what the extra 1 ms is for.
func endsAt(t *testing.T, got, boundary time.Duration) {
	t.Helper()
	want := finish(boundary)
	if got < want-truncated || got > want+time.Millisecond+10*time.Microsecond {
		t.Errorf("the lease ended at %v, want at %v or up to 1 ms later", got, want)
	}
}

// drifted is how long a clock that is fast by rate takes to show d.
func drifted(d time.Duration, rate float64) time.Duration {
	return time.Duration(float64(d) / (1 + rate))
}

func TestTheWinnerIsAllocatedRightAfterTheBoundaryAndExpiredRightBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		w := start(t, setup{ledger: ledger})
		at(21 * time.Minute)
		equal(t, "slots", w.starts(), minutes(5, 10, 15, 20)...)
		for _, i := range []int{1, 2} { // the first turn of a worker is drawn
			u := w.turn(t, i)
			from := time.Duration(i+1) * 5 * time.Minute
			near(t, "allocated", u.allocated, begin(from))
			endsAt(t, u.expiredAt, from+5*time.Minute)
			if u.ended != u.expiredAt || u.returned != u.expiredAt || u.expiries != 1 {
				t.Errorf("context ended at %v, code returned at %v, expired %d times at %v; want all at once, once",
					u.ended, u.returned, u.expiries, u.expiredAt)
			}
			if u.cause != workerlease.ErrLeaseExpired || u.why != workerlease.WindowEnded {
				t.Errorf("ended with %v and %q, want %v and %q", u.cause, u.why, workerlease.ErrLeaseExpired, workerlease.WindowEnded)
			}
			if u.validAtExpiry {
				t.Error("the lease is valid in LeaseExpired")
			}
			l := u.lease
			want := t0.Add(from)
			if !l.Start.Equal(want) || !l.Expiry.Equal(want.Add(5*time.Minute)) || l.Token != want.UnixMilli() ||
				l.Slot != (slots.Slot{Start: want, End: want.Add(5 * time.Minute)}) || l.WorkerType != "job" {
				t.Errorf("lease = %+v, want the slot of %v with its start as token", l, want)
			}
		}
	})
}

func TestHigherPriorityWinsInEveryOrderOfStarting(t *testing.T) {
	for _, order := range [][]int{{0, 4, 7}, {7, 4, 0}, {4, 0, 7}} {
		bubble(t, fmt.Sprint(order), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			for _, p := range order {
				start(t, setup{ledger: ledger, Options: named(fmt.Sprint(p), p)})
				time.Sleep(time.Second)
			}
			at(16 * time.Minute)
			equal(t, "holders", holders(t, ledger), "0", "0", "0")
		})
	}
}

func TestAmongEqualsStickyKeepsAndRotateRotates(t *testing.T) {
	for _, test := range []struct {
		tie                  priority.TieBreak
		workers, least, most int // changes of holder in 30 slots
	}{
		{priority.Sticky, 3, 0, 0},
		{priority.Rotate, 2, 29, 29},
		{priority.Random, 2, 3, 26}, // 14.5 on average; beyond: 1 in 100,000
	} {
		bubble(t, test.tie.String(), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			for i := range test.workers {
				start(t, setup{ledger: ledger, Options: workerlease.Options{
					InstanceID: fmt.Sprint(i), TieBreak: test.tie, LeaseInterval: time.Minute,
				}})
			}
			at(30*time.Minute + time.Second)
			names := holders(t, ledger)
			changes := len(slices.Compact(slices.Clone(names))) - 1
			if len(names) != 30 || changes < test.least || changes > test.most {
				t.Errorf("held by %v: %d changes, want %d to %d in 30 slots", names, changes, test.least, test.most)
			}
		})
	}
}

func TestTwoWorkersWithOneNameAreStillTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		a := start(t, setup{ledger: ledger, Options: named("same", 0)})
		b := start(t, setup{ledger: ledger, Options: named("same", 0)})
		at(31 * time.Minute)
		if n := len(a.starts()) + len(b.starts()); n != 6 {
			t.Errorf("%d leases in 6 slots: %v and %v", n, a.starts(), b.starts())
		}
	})
}

func TestOneClientRunsManyWorkerTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &worker{}
		client := newClient(all, setup{ledger: memory.New(memory.Options{})})
		var workers []*worker
		for i := range 5 {
			workers = append(workers, start(t, setup{client: client, Options: workerlease.Options{WorkerType: fmt.Sprint("type", i)}}))
		}
		at(11 * time.Minute)
		for _, w := range workers {
			equal(t, w.Status().WorkerType, w.starts(), minutes(5, 10)...)
			if w.Client() != client {
				t.Error("Client() is another")
			}
		}
	})
}

func TestTheContextOfALeaseCarriesTheValuesOfStartLeasing(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		var got any
		start(t, setup{
			ctx:  context.WithValue(t.Context(), key{}, "value"),
			work: func(ctx context.Context, _ workerlease.Lease) { got = ctx.Value(key{}) },
		})
		at(6 * time.Minute)
		if got != "value" {
			t.Errorf("ctx.Value = %v, want value", got)
		}
	})
}
