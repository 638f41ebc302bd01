package workerlease_test

import (
	"context"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// stampVariants leave out a part of how uncertain a stamp is.
var stampVariants = []variant{
	// w0 has its time from a member whose clock is behind, and w1 from one whose clock
	// is ahead, each of them within what is allowed.
	{name: "all servers of a store agree about the time", rule: "Stamp.Skew", regime: uncertain, around: restamped(func(s *store.Stamp) { s.Skew = 0 })},
	// w0 gets a stamp that was made a second before it was sent.
	{name: "a stamp is made when it is asked for", rule: "Stamp.MaxAge", regime: oldStamps, around: restamped(func(s *store.Stamp) { s.MaxAge = 0 })},
	// The store shows whole seconds. It is nearly a second later when it does.
	{name: "a stamp is exact", rule: "Stamp.Granularity", regime: coarse, around: restamped(func(s *store.Stamp) { s.Granularity = 0 })},
	// The store's answer takes a while. What w0 takes for now was then.
	{name: "a stamp tells the time at which it arrives", rule: "round trip", regime: slow,
		around: func(l store.Ledger, o workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions) {
			return instant{l}, o
		}},
	// w0's clock is slow by as much as is assumed, and w0 hasn't heard of the time for
	// most of its slot.
	{name: "a clock that was right stays right", rule: "MaxDrift", regime: drifting,
		around: func(l store.Ledger, o workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions) {
			o.Clock = trustedClock{o.Clock}
			return l, o
		}},
}

// coarse: the store shows the time in whole seconds.
func coarse(seed int64) sim.Options {
	o := sim.Random(seed)
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		return workerlease.NewClient(restamper{l, func(s *store.Stamp) {
			s.Time, s.Granularity = s.Time.Truncate(time.Second), 1000*s.Granularity
		}}, c)
	}
	return o
}

var (
	// slow: the store has one clock, which is right, and its answers take a while.
	slow = varied(func(f *sim.Faults) { f.Latency, f.Skew, f.StampAge = 300*time.Millisecond, 0, 0 }, nil)
	// drifting: the same, with answers that take no time, and clocks that drift.
	drifting = varied(func(f *sim.Faults) {
		f.Latency, f.Skew, f.StampAge, f.Drift, f.NoBoottime = time.Millisecond, 0, 0, 0.001, false
	}, every(5*time.Minute))
)

// restamped lets the engine see stamps that were changed.
func restamped(change func(*store.Stamp)) around {
	return func(l store.Ledger, o workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions) {
		return restamper{l, change}, o
	}
}

type restamper struct {
	store.Ledger
	change func(*store.Stamp)
}

func (r restamper) Now(ctx context.Context) (store.Stamp, error) {
	s, err := r.Ledger.Now(ctx)
	r.change(&s)
	return s, err
}

func (r restamper) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, s, err := r.Ledger.Tail(ctx, workerType, limit)
	if !s.IsZero() {
		r.change(&s)
	}
	return records, s, err
}

// instant is a ledger that hides how long its answers take: a stamp lies back by as much
// as the engine then adds for that.
type instant struct{ store.Ledger }

func (i instant) Now(ctx context.Context) (store.Stamp, error) {
	sent := time.Now()
	s, err := i.Ledger.Now(ctx)
	s.Time = s.Time.Add(-time.Since(sent))
	return s, err
}

func (i instant) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	sent := time.Now()
	records, s, err := i.Ledger.Tail(ctx, workerType, limit)
	if !s.IsZero() {
		s.Time = s.Time.Add(-time.Since(sent))
	}
	return records, s, err
}

// trustedClock goes slower by as much as the later edge of what the engine knows then
// goes faster, so that this doesn't widen.
type trustedClock struct{ clock.Clock }

func (c trustedClock) Boottime() time.Duration {
	d := c.Clock.(interface{ Boottime() time.Duration }).Boottime()
	return d - d/1000
}
