package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/store"
)

// loss is a moment at which the store lost the newest records of a ledger, which it had acknowledged.
type loss struct {
	at      time.Duration
	records []store.Record
}

// lose lets the store lose records: one to three of the newest, as an asynchronous failover does; those of some time, as a copy
// that is restored; or all.
func (w *world) lose() {
	p := &Process{world: w, lanes: 1021 * lanes}
	r := newRand(w.o.Seed, forLosses, 0, 0)
	for next := r.upTo(2 * w.o.Faults.Losses); next < w.o.Length; next += r.span(w.o.Faults.Losses/4, 2*w.o.Faults.Losses) {
		if at := w.now(); next > at {
			time.Sleep(p.slot(next, lifeLane) - at)
		}
		w.mu.Lock()
		l := w.ledger(w.hosts[0].options.WorkerType)
		n := 1 + r.below(3)
		switch r.below(4) {
		case 0:
			n = len(l.list)
		case 1:
			n = 1 + r.below(len(l.list)+1)
		}
		kept := max(0, len(l.list)-n)
		if x := (loss{w.now(), slices.Clone(l.list[kept:])}); len(x.records) > 0 {
			w.tally.strike(Loss)
			l.list = l.list[:kept]
			l.losses = append(l.losses, x)
			for _, r := range x.records {
				l.undone = append(l.undone, undone{x.at, r})
				delete(l.first, r.Seq)
			}
		}
		w.mu.Unlock()
	}
}

// history names the store's line of changes. The caller holds world.mu.
func (w *world) history() string {
	if !w.o.Faults.NamesHistory {
		return ""
	}
	return "history " + strconv.Itoa(len(w.ledger(w.hosts[0].options.WorkerType).losses))
}

// AppendAfter inserts a record right above another one.
func (k *link) AppendAfter(ctx context.Context, r, prev store.Record) error {
	if k.p.world.o.Faults.Unfollowed {
		return fmt.Errorf("sim: append after a record: %w", errors.ErrUnsupported)
	}
	if err := store.CheckAfter(r, prev); err != nil {
		return err
	}
	return k.insert(ctx, r, &prev)
}

// knows notes the records that a process was shown, or has appended, at a true time.
func (p *Process) knows(at time.Duration, records ...store.Record) {
	if p.world.o.Faults.Losses == 0 {
		return
	}
	p.answers.mu.Lock()
	defer p.answers.mu.Unlock()
	if p.answers.known == nil {
		p.answers.known, p.answers.began = map[seen]bool{}, at
	}
	for _, r := range records {
		p.answers.known[seen{r.Seq, r.Kind, r.Claim}] = true
	}
}

// seen is a record as a process remembers it.
type seen struct {
	seq   int64
	kind  store.Kind
	claim string
}

// auditLost checks a grant that has just landed against the records that were lost. A worker that knows one of these waits
// until all that were lost with it are over; one that knows how the history is called, too, if that shows a loss; and no
// term is extended whose record is gone.
func (w *world) auditLost(p *Process, l *ledger, r store.Record, at time.Duration) {
	if r.Kind != store.KindGrant {
		return
	}
	p.answers.mu.Lock()
	defer p.answers.mu.Unlock()
	for _, x := range l.losses {
		below, _ := l.get(r.Seq - 1)
		knew := w.o.Faults.NamesHistory && p.answers.known != nil && p.answers.began < x.at
		for _, y := range x.records {
			knew = knew || p.answers.known[seen{y.Seq, y.Kind, y.Claim}]
			if y.Seq == r.Seq-1 && y.Claim == r.Claim && below.Claim != r.Claim && (!w.o.Faults.Unfollowed || at-time.Duration(p.readAt.Load()) > blind) {
				w.violate("seq %d of %v extends seq %d, which was lost at %v", r.Seq, p, y.Seq, x.at)
			}
		}
		for _, y := range x.records {
			if knew && y.Kind == store.KindGrant && y.Claim != r.Claim && y.WindowEnd.After(r.WindowStart) {
				w.violate("seq %d of %v begins at %v, though it knew of what was lost at %v: seq %d lasts until %v",
					r.Seq, p, w.time(r.WindowStart), x.at, y.Seq, w.time(y.WindowEnd))
				break
			}
		}
	}
}

// blind is how long after a read of the head an extension may be stored, at most, where the store compares nothing.
const blind = 10 * time.Second

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
