package machine

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// An operator's trigger asks for one more run of a job. A worker that hears of it, and has nothing else to do, lets a
// second machine claim the run, whose only slot is the time in which that may begin. It claims as any worker of another
// schedule does, so nothing about exclusion is new here. The order is in the head until a record says that the run
// is done, or given up, or until its time is over. What is done of the job's own slots stays as it was.

// Triggers are what a worker knows of triggers.
type Triggers struct {
	Order  store.Order                    // the oldest one that is to be tried; zero: there is none
	Seq    int64                          // of a record that has it
	From   time.Duration                  // the local reading before which it isn't tried; 0: that has come
	Due    bool                           // and the order's time, too
	Barred time.Time                      // up to when another order keeps the worker from it
	Trying bool                           // a run is being claimed, or goes on
	Beside bool                           // the code of one runs, and its lease is over
	After  time.Duration                  // the local reading before which what has come of that may be recorded; 0: that has come
	Room   string                         // the claim whose rest was released for one
	Over   [store.MaxOrderCount]time.Time // those that this worker tries no more, by their At, the newest first
}

// Trigger is the one that a machine serves.
type Trigger struct {
	Order store.Order // zero: it serves none
	Seq   int64       // of a record that has the order: what is older says nothing about it
	// Slots are the job's own, and By is when the next one starts, before which the run begins: that comes first.
	Slots slots.Schedule
	By    time.Time
}

// IsZero reports that a machine serves no trigger.
func (t Trigger) IsZero() bool { return t.Order.Kind == "" }

// Serving is the configuration of the machine that claims the run of a trigger. A run isn't bound by a slot, nor by how
// late that may begin: its caller says when.
func (c Config) Serving(t Trigger) Config {
	length := t.Order.Until.Sub(t.Order.At)
	c.Trigger, c.Schedule, c.Shortest = t, asked{t.Order.At, length}, length
	c.Single, c.Joins, c.Finishes, c.Continuous = true, true, true, false
	c.Group, c.StartWithin, c.CatchUp = "", 0, CatchUpNone
	c.Failover = min(c.Failover, length/2)
	return c
}

// asked is the schedule of a trigger: slots from its At on, each as long as its time.
type asked struct {
	from   time.Time
	length time.Duration
}

func (a asked) At(t time.Time) slots.Slot {
	n := t.Sub(a.from) / a.length
	if t.Before(a.from.Add(n * a.length)) {
		n--
	}
	start := a.from.Add(n * a.length)
	return slots.Slot{Start: start, End: start.Add(a.length)}
}

func (a asked) Next(t time.Time) slots.Slot { return a.At(a.At(t).End) }

func (asked) String() string { return store.Triggered }

// Served is what came of a try to serve a trigger: it is over, or tried again after a while.
type Served struct {
	At    time.Time // of the trigger: the worker may have heard of another one meanwhile
	Over  bool
	After time.Duration
}

// Serve: claim the run of a trigger, and say what came of that.
type Serve struct{ Trigger Trigger }

func (Served) event() {}
func (Serve) action() {}

// hearTriggers takes in the orders of a record, which are in force.
func (x *step) hearTriggers(orders []store.Order, seq int64) {
	t := &x.s.Triggers
	was := t.Order.At
	t.Order = store.Order{}
	if !x.m.Once || x.m.Single || x.m.Group != "" {
		return
	}
	i := slices.IndexFunc(orders, func(o store.Order) bool { return x.m.servable(o) && !slices.Contains(t.Over[:], o.At) })
	if i < 0 {
		return
	}
	t.Order, t.Seq = orders[i], seq
	ends := x.s.View.Carried.Triggered
	if ends.IsZero() && t.Order.At.Equal(was) || !x.at.Now.Known() || x.s.Bid.Slot.IsZero() {
		return
	}
	// It is new, or who runs for it may end, or has given it back. All hear of that at one time.
	t.Due, t.From = false, x.at.Local+x.hintTurn(4)
	if !ends.IsZero() {
		t.From += max(0, ends.Sub(x.at.Now.Earliest))
	}
}

// servable reports that an order is a trigger that an operator can have given: the slot that it makes is neither too short
// for any work, nor longer than windows that others obey.
func (c *Config) servable(o store.Order) bool {
	length := o.Until.Sub(o.At)
	return o.Kind == store.OrderTrigger && length >= time.Second && length <= c.Rules.Longest
}

// makesRoom has the rest of a term released whose work is done, and reports whether there is one: nobody needs it for that, but
// a trigger's run can't begin before it is over.
func (x *step) makesRoom() bool {
	s := x.s
	left := &s.Hold.Left
	if !left.Own || left.Claim == s.Triggers.Room || !x.at.Now.Latest.Before(left.End) || !x.m.IsDone(s.View.Carried, left.Slot) {
		return false
	}
	s.Triggers.Room = left.Claim
	s.Closing = Closing{Claim: left.Claim, Release: true, Until: x.at.Local + closeLate}
	return true
}

// closes reports that there is something to record.
func (c *Closing) closes() bool { return !c.Done.IsZero() || c.Release }

// besides takes in whether the code of a trigger's run goes on beside its lease. When it has returned, what came of it is recorded
// before anything else: the worker lets that land, or its next claim would meet it.
func (x *step) besides() {
	t := &x.s.Triggers
	switch runs := x.at.Beside; {
	case t.Beside && !runs:
		t.After = x.at.Local + max(hintStep, x.m.Rules.Landing(x.s.Trips, true))
	case runs, x.at.Local >= t.After:
		t.After = 0
	}
	t.Beside = x.at.Beside
}

// beside reports that the worker waits for the code of a trigger's run, or for the record of that.
func (t *Triggers) beside() bool { return t.Beside || t.After > 0 }

// serve begins a try at a trigger, once its time has come and nothing else is to be done.
func (x *step) serve() {
	t := &x.s.Triggers
	t.Barred = time.Time{}
	switch now := x.at.Now.Earliest; {
	case t.Order.Kind == "" || t.Trying || !x.at.Now.Known():
		return
	case !t.Order.InForce(now):
		x.hear() // There may be another one.
		return
	case x.at.Local >= t.From:
		t.From = 0
	}
	t.Due = t.Due || t.From == 0 && !x.at.Now.Earliest.Before(t.Order.At)
	if !t.Due || !x.unoccupied() || x.unfinished(x.at.Now.Latest, x.m.Schedule) {
		return
	}
	if t.Barred, _ = x.barred(); !t.Barred.IsZero() {
		return
	}
	if x.makesRoom() {
		x.contend()
		return
	}
	t.Trying = true
	x.do(Serve{Trigger{t.Order, t.Seq, x.m.Schedule, x.s.Bid.Slot.Start}})
}

// served takes in what came of a try.
func (x *step) served(e Served) {
	t := &x.s.Triggers
	t.Trying = false
	if t.Order.At.Equal(e.At) {
		t.Due, t.From = false, x.at.Local+e.After
	}
	if e.Over {
		copy(t.Over[1:], t.Over[:])
		t.Over[0] = e.At
		x.hear() // There may be another one.
	}
	x.s.Hint.Heard = true // No hint was heeded meanwhile.
}

// rests reports that the worker holds nothing, has nothing to record, and waits for its turn.
func (m *Machine) rests(s *State) bool {
	b, h := &s.Bid, &s.Hold
	return m.Once && !m.Single && !s.Stopping && b.Stage == Aiming && !b.Barred && !h.holding() && h.Next.IsZero() && !h.Running &&
		!s.Closing.closes() && s.View.Watch.Seq == 0 && !s.Clock.Unknown()
}

// attends reports that a worker which rests looks at the head when it gets a hint.
func (m *Machine) attends(s *State) bool { return m.TakesRests() && m.rests(s) }

// unoccupied reports that the worker waits for the next slot: no work of an earlier one is left.
func (f facts) unoccupied() bool {
	b := &f.s.Bid
	return f.m.rests(f.s) && f.at.Now.Known() && b.Slot.Start.After(f.at.Now.Mid()) && (f.m.CatchUp == CatchUpNone || f.work(b.Slot.Start) == b.Slot)
}

// mayServe reports that the run of a trigger may begin at a time: in its own time, before the next slot of the job, and when the
// present one is over.
func (f facts) mayServe(start time.Time) bool {
	t := &f.m.Trigger
	return f.s.Bid.Slot.Start.Equal(t.Order.At) && start.Before(t.By) && !f.unfinished(start, t.Slots)
}

// unfinished reports that others may try the slot of a time again. Who waits for the next one doesn't.
func (f facts) unfinished(at time.Time, by slots.Schedule) bool {
	c, slot := &f.s.View.Carried, by.At(at)
	return c.Attempt > 0 && c.Begun.IsZero() && c.Slot.Equal(slot.Start) && !f.m.Rules.IsDone(*c, slot, by) && !f.exhausted(slot)
}

// listens reads the head because of a hint while the worker is idle: an operator may have given an order. It does so only if there
// is time for that before anything else is due, which reads the head, too.
func (x *step) listens() bool {
	h := &x.s.Hint
	if !h.Heard || x.at.Local < h.next() || !x.m.attends(x.s) || x.m.waitsForOthers(x.s) {
		return false
	}
	h.Heard = false
	if x.s.Triggers.Trying || !x.unoccupied() || !x.room(ReadingHead) {
		return false
	}
	h.Looked, h.Spent = x.at.Local, max(h.Spent, x.at.Local)+hintEvery
	x.s.Report.Looking = true // Nothing waits for it, so it may fail.
	x.readHead()
	return true
}

// serveWaits is what to wait for because of a trigger.
func (m *Machine) serveWaits(s *State) []Wait {
	t := &s.Triggers
	switch {
	case t.After > 0:
		return []Wait{{Local: t.After}}
	case t.Order.Kind == "" || t.Trying || !m.rests(s):
		return nil
	case !t.Barred.IsZero():
		return []Wait{{Time: t.Barred, Edge: timeline.Earliest}}
	case t.From > 0:
		return []Wait{{Local: t.From}}
	case !t.Due:
		return []Wait{{Time: t.Order.At, Edge: timeline.Earliest}}
	}
	return nil
}

// startBy is up to when the first attempt at a slot may begin. A run that a trigger asked for, and that went on into the
// slot, puts that off.
func (f facts) startBy(slot slots.Slot) time.Time {
	by, c := f.m.startBy(slot), &f.s.View.Carried
	if by.IsZero() || !c.Triggered.After(slot.Start) || f.m.Rules.Closes(c.Begun, slot) {
		return by
	}
	return later(by, c.Triggered.Add(f.m.startWithin(slot)))
}

// newest is when the newest slot starts whose work was attempted, or was over when a trigger's run began.
func (c *Carried) newest() time.Time { return later(c.Slot, c.Begun) }

// closes is true of a slot within which the run began: workers begin none before the slot's own work is over. The attempts
// at that are not counted any more.
func closes(begun time.Time, slot slots.Slot) bool {
	return !begun.IsZero() && !begun.Before(slot.Start)
}
