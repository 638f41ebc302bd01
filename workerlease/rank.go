package workerlease

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// rankEvery is how often ranks are found, by the workers that have any.
func rankEvery(workers []*WorkerLease) (every time.Duration, ranked bool) {
	every = time.Minute
	for _, w := range workers {
		if w.isRanked() {
			every, ranked = min(every, max(w.machine.Shortest/4, time.Second)), true
		}
	}
	return every, ranked
}

// isRanked reports that the worker's place depends on the roster.
func (w *WorkerLease) isRanked() bool {
	return w.options.Policy != nil || w.options.TieBreak == priority.Spread
}

// rank gives the workers their places among those that are present. Of itself the client knows more than
// the roster says.
func (c *Client) rank(workers []*WorkerLease, all []store.Presence, now time.Time) {
	var present []store.Presence
	for _, p := range all {
		if p.Client != c.roster.client && IsPresent(p, now) {
			present = append(present, p)
		}
	}
	interval := c.rosterTime()
	others := len(present)
	for _, w := range workers {
		present = append(present, w.presence(interval))
	}
	ranks, whys := make([]machine.Rank, len(workers)), make([]string, len(workers))
	for i, w := range workers {
		own := &present[others+i]
		ranks[i] = machine.Rank{Known: true, Priority: w.options.Priority}
		if w.options.Policy != nil {
			var returned bool
			if ranks[i].Priority, whys[i], returned = w.effective(*own, present); !returned {
				present = slices.Clone(present) // It still has the other one.
				own = &present[others+i]
			}
		}
		if !stepsBack(own, now) {
			own.Effective = ranks[i].Priority
		}
	}
	first := spread(present, now)
	for i, w := range workers {
		ranks[i].First = first[w.options.WorkerType] == c.roster.client
		w.setRank(ranks[i], whys[i])
	}
	c.roster.ranked = true
}

// unrank takes their places from the workers: what the client knows of others is too old.
func (c *Client) unrank(workers []*WorkerLease) {
	for _, w := range workers {
		if w.isRanked() {
			w.setRank(machine.Rank{}, "the roster can't be read")
		}
	}
	c.roster.ranked = false
}

// setRank lets a worker know its place, if that is another one.
func (w *WorkerLease) setRank(rank machine.Rank, why string) {
	a := w.attendee
	if !w.isRanked() || a.rank == rank && a.why == why {
		return
	}
	a.rank, a.why = rank, why
	shown := event.Ranked{Worker: w.label(), Priority: w.options.Priority, First: rank.First, Why: why}
	if rank.Known {
		shown.Priority = rank.Priority
	}
	w.post(arrival{event: machine.Ranked{Rank: rank}, observed: []event.Event{shown}})
}

// policyTimeout is how long the client waits for a policy: its other workers wait, too.
const policyTimeout = time.Second

// asked is a call of a policy.
type asked struct {
	returned chan struct{} // closed then
	p        int           // readable then
	why      string
	err      error
}

// effective asks the worker's policy. One that doesn't return is not asked again before it has, and counts as none.
func (w *WorkerLease) effective(own store.Presence, present []store.Presence) (p int, why string, returned bool) {
	const late = "its policy has not returned"
	a := w.attendee
	if a.asked != nil {
		select {
		case <-a.asked.returned:
			a.asked = nil // What it says is about long ago.
		default:
			return w.options.Priority, late, true
		}
	}
	k := &asked{returned: make(chan struct{}), err: errors.New("Policy ended its goroutine")}
	go func() { // A policy may end its goroutine, as FailNow of a test does.
		defer close(k.returned)
		if err := guarded("Policy", func() { k.p, k.why = w.options.Policy(own, present); k.err = nil }); err != nil {
			k.err = err
		}
	}()
	over := make(chan struct{})
	stop := w.client.after(policyTimeout, func() { close(over) })
	defer stop()
	select {
	case <-k.returned:
	case <-over:
		a.asked = k
		err := fmt.Errorf("%s: Options.Policy has not returned for %v, so Priority counts", w.options.WorkerType, policyTimeout)
		w.post(arrival{observed: []event.Event{event.Stuck{Worker: w.label(), In: "Options.Policy", Took: policyTimeout}}, err: err})
		return w.options.Priority, late, false
	}
	if k.err != nil {
		w.post(arrival{observed: []event.Event{event.Panic{Worker: w.label(), Err: k.err}}, err: k.err})
		return w.options.Priority, "its policy panicked", true
	}
	if p, why = k.p, k.why; p < priority.Highest || p > priority.Lowest {
		why = fmt.Sprintf("%s (its policy said %d)", why, p)
		p = min(max(p, priority.Highest), priority.Lowest)
	}
	return p, shortened(why), true
}

// spread assigns worker types to clients, by those workers that may go first among equals.
func spread(present []store.Presence, now time.Time) map[string]string {
	best, candidates := map[string]int{}, map[string][]string{}
	for _, p := range present {
		if !p.Spreads || p.Ineligible != "" || stepsBack(&p, now) {
			continue
		}
		if least, ok := best[p.WorkerType]; !ok || p.Effective < least {
			best[p.WorkerType], candidates[p.WorkerType] = p.Effective, nil
		}
		if p.Effective == best[p.WorkerType] {
			candidates[p.WorkerType] = append(candidates[p.WorkerType], p.Client)
		}
	}
	return priority.Assign(candidates)
}
