package workerlease

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/option"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// roster is a client's part in the roster of its ledger. One goroutine, from the first worker to the last,
// writes what the workers say of themselves, and reads what others say. No worker waits for it but one
// that ends, and that not for long.
type roster struct {
	wanted bool
	ledger store.Roster // nil: the client takes part in none

	mu       sync.Mutex
	client   string // its name there; once a worker has been there
	workers  map[*WorkerLease]bool
	number   int // of workers so far
	leaving  []*WorkerLease
	running  bool
	wake     chan struct{} // has one if there is something to do soon
	cancelOp context.CancelFunc

	// Only of the goroutine that runs.
	next   time.Duration // the local reading at which there is something to do
	told   bool          // that operations fail
	failed int64         // how often the store had answered workers when one failed last; 0: none did
	read   time.Duration // the local reading of the newest read that succeeded
	ranked bool          // since then workers have had ranks
}

// PresenceGrace is how much later than announced a presence may come: see [IsPresent].
const PresenceGrace = 5 * time.Second

const (
	// presenceEvery is how often a presence is written at most, and mostPresence how often at least; in
	// between once for each slot.
	presenceEvery = 10 * time.Second
	mostPresence  = 5 * time.Minute
	// presenceExpiry is how long the presence of a worker that is gone is remembered.
	presenceExpiry = 24 * time.Hour
	// gatherFor lets workers that start together be written together.
	gatherFor = 100 * time.Millisecond
	// rosterTimeout bounds an operation, and leaveGrace how long a worker that ends waits for one.
	rosterTimeout = 10 * time.Second
	leaveGrace    = time.Second
)

// attend lets a worker take part.
func (c *Client) attend(w *WorkerLease) {
	r := &c.roster
	if r.ledger == nil {
		return
	}
	schedule := w.options.Schedule.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.workers == nil {
		r.client = c.newRosterName()
		r.workers, r.wake = map[*WorkerLease]bool{}, make(chan struct{}, 1)
	}
	r.number++
	w.attendee = newAttendee(r.client, r.number, schedule)
	w.attendee.job = Timing{Options: w.options, ShortestSlot: w.machine.Shortest, config: w.machine.Config}.JobTimes()
	r.workers[w] = true
	c.wakeRosterLocked()
	if !r.running {
		r.running = true
		go c.runRoster()
	}
}

// check adds what keeps a worker from taking part.
func (r *roster) check(errs *option.Errors, o *Options) {
	if r.wanted && r.ledger == nil {
		errs.Add(option.Error{Field: "ClientOptions.Roster", Found: "is set", Rule: "the ledger keeps no roster: use a store that does, or leave it out"})
	}
	if r.wanted {
		return
	}
	need := func(field string) {
		errs.Add(option.Error{Field: field, With: []string{"ClientOptions.Roster"}, Found: "is set without ClientOptions.Roster", Rule: "it goes by the roster: set both"})
	}
	if o.Policy != nil {
		need("Policy")
	}
	if o.TieBreak == priority.Spread {
		need("TieBreak")
	}
}

// unattend ends the part of a worker that ends: its presence is removed, if that doesn't take long.
func (c *Client) unattend(w *WorkerLease) {
	if w.attendee == nil {
		return
	}
	r := &c.roster
	r.mu.Lock()
	delete(r.workers, w)
	r.leaving = append(r.leaving, w)
	c.wakeRosterLocked()
	r.mu.Unlock()
	late := make(chan struct{})
	stop := c.after(leaveGrace, func() { close(late) })
	defer stop()
	select {
	case <-w.attendee.left:
	case <-late:
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.workers) == 0 && r.cancelOp != nil {
			r.cancelOp() // Nobody needs what is under way.
		}
	}
}

func (c *Client) wakeRosterLocked() {
	select {
	case c.roster.wake <- struct{}{}:
	default:
	}
	c.activity.parkRoster(time.Time{}) // Even if it was woken before: that may have been another goroutine.
}

// runRoster goes on until no worker is left.
func (c *Client) runRoster() {
	r := &c.roster
	r.next = c.local() + gatherFor
	for {
		c.leaveRoster()
		if wait := r.next - c.local(); wait > 0 {
			if !c.waitForRoster(wait) {
				return
			}
			continue
		}
		wait := c.attendRoster()
		r.next = c.local() + wait // From now on, or what has just been written would not be due then.
	}
}

// waitForRoster waits, or until there is something to do. It reports false if no worker is left.
func (c *Client) waitForRoster(wait time.Duration) bool {
	r := &c.roster
	alarm := make(chan struct{})
	r.mu.Lock()
	if len(r.workers) == 0 && len(r.leaving) == 0 {
		r.running = false
		c.activity.leaveRoster()
		r.mu.Unlock()
		return false
	}
	stop := c.after(wait, func() { close(alarm) })
	defer stop()
	if len(r.wake) == 0 {
		c.activity.parkRoster(c.clock.Now().Add(wait))
	}
	r.mu.Unlock()
	select {
	case <-alarm:
	case <-r.wake:
		r.next = min(r.next, c.local()+gatherFor)
	}
	c.activity.parkRoster(time.Time{})
	return true
}

// askRoster is one operation on the roster. The first worker reports its cost and, once, that operations fail while the
// store answers workers: that costs only the order of claims. An outage of the store is reported by the workers.
func (c *Client) askRoster(f func(context.Context) error) bool {
	r := &c.roster
	r.mu.Lock()
	timeout := rosterTimeout
	if len(r.workers) == 0 {
		timeout = leaveGrace // Nobody waits for it any longer.
	}
	ctx, cancel := c.clock.WithTimeout(context.Background(), timeout)
	r.cancelOp = cancel
	r.mu.Unlock()
	defer cancel()
	ctx, receipt := store.WithReceipt(ctx)
	answers := c.answers.Load()
	err := f(ctx)
	// A store that refuses this alone does answer.
	refuses := (errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrRefused)) && !c.down.any()
	fails := err != nil && !r.told && (refuses || r.failed > 0 && answers > r.failed)
	if r.failed = 0; err != nil {
		r.failed = max(c.answers.Load(), 1)
	}
	units := receipt.Units()
	if workers := c.attendees(); len(workers) > 0 && (fails || units > 0) {
		var observed []event.Event
		if units > 0 {
			observed = append(observed, event.Charged{Worker: workers[0].label(), Operation: "roster", Units: units})
		}
		if fails {
			r.told = true
			observed = append(observed, event.RosterFailed{Worker: workers[0].label(), Err: err})
		}
		workers[0].post(arrival{observed: observed})
	}
	return err == nil
}

// attendees are the workers, in the order in which they came.
func (c *Client) attendees() []*WorkerLease {
	r := &c.roster
	r.mu.Lock()
	defer r.mu.Unlock()
	workers := make([]*WorkerLease, 0, len(r.workers))
	for w := range r.workers {
		workers = append(workers, w)
	}
	slices.SortFunc(workers, func(a, b *WorkerLease) int { return cmp.Compare(a.attendee.number, b.attendee.number) })
	return workers
}

// leaveRoster removes the presences of workers that have ended. Those that failed are remembered.
func (c *Client) leaveRoster() {
	r := &c.roster
	r.mu.Lock()
	leaving := r.leaving
	r.leaving = nil
	r.mu.Unlock()
	if len(leaving) == 0 {
		return
	}
	now := c.rosterTime()
	var stopped []store.Presence
	ids, order := map[string][]string{}, []string(nil)
	for _, w := range leaving {
		p := w.presence(now)
		switch {
		case p.Failures > 0 && now.Known():
			p.Phase = store.PhaseStopped
			stopped = append(stopped, p)
		case w.attendee.stored.ID != "":
			if ids[p.WorkerType] == nil {
				order = append(order, p.WorkerType)
			}
			ids[p.WorkerType] = append(ids[p.WorkerType], p.ID)
		}
	}
	if len(stopped) > 0 && !c.askRoster(func(ctx context.Context) error { return r.ledger.Attend(ctx, stopped) }) && len(c.attendees()) == 0 {
		order = nil // No worker is left to go on for.
	}
	for _, workerType := range order {
		if !c.askRoster(func(ctx context.Context) error { return r.ledger.Leave(ctx, workerType, ids[workerType]) }) {
			break // What is left shows soon that nobody renews it.
		}
	}
	for _, w := range leaving {
		close(w.attendee.left)
	}
}

// rosterTime is store time as far as the client knows it.
func (c *Client) rosterTime() timeline.Interval {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.line.At(c.local(), c.line.Epoch())
}

// attendRoster reads what has to be read and writes what has to be written, and returns after how long
// there may be something to do again.
func (c *Client) attendRoster() time.Duration {
	r, workers := &c.roster, c.attendees()
	now := c.rosterTime()
	if !now.Known() {
		return time.Second // No worker has got the store's time yet.
	}
	every, ranked := rankEvery(workers)
	if r.wants(c, workers, every, ranked) {
		workerType := ""
		if !ranked && len(workers) == 1 {
			workerType = workers[0].options.WorkerType
		}
		var all []store.Presence
		if c.askRoster(func(ctx context.Context) (err error) {
			all, err = r.ledger.Presences(ctx, workerType)
			return err
		}) {
			r.read = c.local()
			c.recall(workers, all, now.Mid())
			miss(workers, all)
			if ranked {
				c.rank(workers, all, now.Mid())
			}
		} else if r.ranked && c.local()-r.read > 3*every {
			c.unrank(workers)
		}
	}
	if c.writePresences(workers, now) {
		return gatherFor
	}
	return min(every, presenceEvery)
}

// wants reports that the roster is to be read: for new workers, and for ranks.
func (r *roster) wants(c *Client, workers []*WorkerLease, every time.Duration, ranked bool) bool {
	if ranked && (r.read == 0 || c.local()-r.read >= every) {
		return true
	}
	return slices.ContainsFunc(workers, func(w *WorkerLease) bool { return !w.attendee.recalled })
}

// writePresences writes those that are due, and reports that others will be soon. Those are removed that these
// take the place of.
func (c *Client) writePresences(workers []*WorkerLease, now timeline.Interval) (soon bool) {
	r := &c.roster
	local := c.local()
	var due []store.Presence
	var of []*WorkerLease
	for _, w := range workers {
		p, a := w.presence(now), w.attendee
		if a.waits {
			a.waits, soon = false, true
			continue
		}
		if a.stored.ID == "" || local-a.at >= w.presenceEvery() || local-a.at >= presenceEvery && (a.gone || !says(p, a.stored)) {
			due, of = append(due, p), append(of, w)
		}
	}
	if len(due) == 0 || !c.askRoster(func(ctx context.Context) error { return r.ledger.Attend(ctx, due) }) {
		return soon
	}
	for i, w := range of {
		a := w.attendee
		a.stored, a.at, a.gone = due[i], local, false
		if len(a.before) > 0 {
			c.askRoster(func(ctx context.Context) error { return r.ledger.Leave(ctx, due[i].WorkerType, a.before) })
			a.before = nil
		}
	}
	return soon
}
