package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
)

// vote is an election, as it treats calls.
type vote struct {
	outage
	hangs    bool // appends get no answer
	minority bool // a member goes on that a minority follows
	wins     bool // and becomes the primary
	reads    bool // are answered
	lands    float64
}

// vote is the election at a true time, if there is one.
func (s *server) vote(at time.Duration) (v vote, ok bool) {
	if v.outage, ok = s.votes.at(at); !ok {
		return v, false
	}
	r := newRand(s.seed, forElections, 1, int64(v.from))
	v.reads, v.wins, v.lands = r.chance(0.5), r.chance(0.3), r.float()
	switch r.below(3) {
	case 0:
		v.hangs = true
	case 1:
		v.minority = true
	}
	return v, true
}

// elect treats a call that reaches the store in an election. It reports false if the call goes
// on as always.
func (k *link) elect(ctx context.Context, v vote, o op, c *call, effect func(time.Duration, *call) error) (err error, done bool) {
	switch w := k.p.world; {
	case !o.writes && v.reads:
		return nil, false
	case o.seq > 0 && v.minority:
		return k.follow(ctx, v, o, c, effect), true
	case o.seq > 0 && v.hangs:
		w.tally.strike(HungAppend)
		if c.rand.chance(v.lands) {
			k.land(v.to-w.now(), effect)
		}
		return k.silence(ctx), true
	case v.hangs || v.minority:
		return k.silence(ctx), true
	}
	return fmt.Errorf("%w: %s", errRefused, v.kind), true
}

// follow is an append to a member that only a minority follows.
func (k *link) follow(ctx context.Context, v vote, o op, c *call, effect func(time.Duration, *call) error) error {
	w := k.p.world
	w.mu.Lock()
	l := w.ledger(o.workerType)
	_, stands := l.get(o.seq)
	taken := stands || l.minority[o.seq] == v.from
	if !taken {
		l.minority[o.seq] = v.from
	}
	w.mu.Unlock()
	switch {
	case taken:
		if !stands && !v.wins {
			w.tally.strike(Vanished)
		}
		if err := k.travel(ctx, c.after, replyLane); err != nil {
			return err
		}
		return fmt.Errorf("sim: append: %w", store.ErrConflict)
	case v.wins:
		k.land(v.to-w.now(), effect)
	default:
		w.tally.strike(Undone)
	}
	return k.silence(ctx)
}
