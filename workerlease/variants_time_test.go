package workerlease_test

import (
	"context"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// timeVariants are careless about the time.
var timeVariants = []variant{
	// w0 claims by what it heard of the time long ago. (Windows stay disjoint, since
	// what it knows grows ever more uncertain.)
	{
		name: "an old sample of the time is as good as a new one", rule: "Fresh", regime: cutShort,
		broken: func(r *machine.Rules) { r.Fresh = 24 * time.Hour },
	},
	// w0's machine is suspended while it works. Its clock stood still as well, and it
	// works on when w1 has begun.
	{
		name: "time is counted by a clock that a suspend stops", rule: "local clock", regime: standstills,
		around: func(l store.Ledger, o workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions) {
			o.Clock = sleepyClock{o.Clock}
			return l, o
		},
	},
	// The store's answers take long to come. The middle of what w1 knows is ahead of
	// store time by more than w0's margin, and w1 begins while w0 still works.
	{
		name: "a lease begins by the best guess of the time", rule: "BeginBy", regime: uncertain,
		broken: func(r *machine.Rules) { r.BeginBy = timeline.Mid },
	},
	// The same, the other way round: w0's guess is behind, and it works on when w1
	// has begun.
	{
		name: "a lease ends by the best guess of the time", rule: "EndBy", regime: uncertain,
		broken: func(r *machine.Rules) { r.EndBy = timeline.Mid },
	},
	// Store time is near the end of what w0 knows. It has another uncertainty to go
	// when w1 begins.
	{
		name: "a lease ends when it has surely ended", rule: "EndBy", regime: uncertain,
		broken: func(r *machine.Rules) { r.EndBy = timeline.Earliest },
	},
	// w0 works on for a margin when w1 has begun.
	{
		name: "the margin is a time to finish in", rule: "Last", regime: anything,
		broken: func(r *machine.Rules) {
			r.Last = func(end time.Time, margin time.Duration) time.Time { return end.Add(margin) }
		},
	},
	// w1 hears from a member whose clock is ahead of that by which w0 works, which
	// hasn't asked since. w1 begins by it, and w0 works on.
	{
		name: "another clock of the store is believed at once", rule: "Settled", regime: jumps,
		broken: func(r *machine.Rules) {
			r.Settled = func(timeline.Interval, time.Time) bool { return true }
		},
	},
	// The time of day of w0's machine is set back while it works.
	{
		name: "time is counted by the time of day", rule: "local clock", regime: wallSteps,
		around: func(l store.Ledger, o workerlease.ClientOptions) (store.Ledger, workerlease.ClientOptions) {
			o.Clock = wallClock{o.Clock}
			return l, o
		},
	},
	// w0 has its time from a member whose clock is behind, and w1 from one whose clock
	// is ahead, each of them within what is allowed.
	{
		name: "all servers of a store agree about the time", rule: "Stamp.Skew", regime: uncertain,
		around: restamped(func(s *store.Stamp) { s.Skew = 0 }),
	},
	// w0 gets a stamp that was made a second before it was sent.
	{
		name: "a stamp is made when it is asked for", rule: "Stamp.MaxAge", regime: oldStamps,
		around: restamped(func(s *store.Stamp) { s.MaxAge = 0 }),
	},
}

// sleepyClock is as Go's own: it doesn't go on while the machine is suspended.
type sleepyClock struct{ clock.Clock }

func (c sleepyClock) Boottime() time.Duration {
	return c.Clock.(interface{ Monotonic() time.Duration }).Monotonic()
}

// wallClock takes the time of day for a clock that goes on steadily.
type wallClock struct{ clock.Clock }

func (c wallClock) Boottime() time.Duration { return c.Now().Sub(time.Unix(0, 0)) }

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
