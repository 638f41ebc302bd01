package workerlease

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Status is what a worker is doing, as of its last step.
type Status struct {
	WorkerType string
	InstanceID string
	// Holding says that a lease is held that is valid now, as IsHolder does, and Lease which.
	Holding bool
	Lease   Lease `json:",omitzero"`
	// Running says that user code runs: LeaseAllocated has not returned, or the task has been called and has not.
	// Overrunning says that its lease is over nevertheless: the worker claims nothing then.
	Running, Overrunning bool
	// Won is a slot that was won and has not begun; zero if there is none.
	Won slots.Slot `json:",omitzero"`
	// Contending is the slot that the worker tries to win, or whose claims it waits for;
	// zero until the store has answered.
	Contending slots.Slot `json:",omitzero"`
	// First is the first slot that this worker can have, until that begins, while the ledger shows none that anybody had: so
	// nobody holds a lease, as it should be. Zero otherwise, and while the ledger isn't known.
	First slots.Slot `json:",omitzero"`
	// Draining says that the worker was told to stop, claims nothing more, and waits for the end of its code: of its run, with
	// Options.DrainTimeout. Stopped says that the worker has ended.
	Draining bool `json:",omitzero"`
	Stopped  bool
	// Stuck is how long the worker has done nothing although something was due; 0 if less than a second. It
	// waits for the Observer or Callbacks.Error to return, for an operation on the store that has not ended by its
	// time-out, or for its process to run. Meanwhile it claims, extends and releases nothing. From StuckAfter on,
	// Blocked names what it waits for.
	Stuck time.Duration `json:",omitzero"`

	// StoreTime is the best guess of store time when Status was called, and Uncertainty
	// how far it may be off; zero until the store has answered.
	StoreTime   time.Time `json:",omitzero"`
	Uncertainty time.Duration
	// Blocked says why nothing can begin although the store answers: the worker is stuck, the store's time is in
	// question, the newest record of the ledger can't be obeyed, it leaves nothing to claim
	// for more than a day after the slot, or records were lost, or may be, under which others may yet work. It is
	// empty otherwise.
	Blocked string `json:",omitzero"`
	// Ineligible says why Options.Eligible finds the worker unfit to lead; empty if it is fit, or
	// was not asked. It doesn't make the worker unhealthy.
	Ineligible string `json:",omitzero"`
	// Orders are the orders of operators that the worker has read of, and that may be in force.
	Orders []store.Order `json:",omitzero"`
	// Paused is the order of an operator by which the worker claims nothing; empty if there is none. It
	// doesn't make the worker unhealthy.
	Paused string `json:",omitzero"`
	// Effective is the priority by which the worker claims its slot: its own, unless it steps back or has
	// another by Options.Policy.
	Effective int
	// Warning is a shortcoming that the store describes (see store.Description); empty if there is
	// none. It doesn't make the worker unhealthy.
	Warning string `json:",omitzero"`
	// SampleAge is how old the newest sample of store time is.
	SampleAge time.Duration

	// Failures counts ledger operations that failed in a row. LastError is the newest
	// error, nil if there was none.
	Failures  int
	LastError error `json:",omitzero"`
	// Allocated, Lost and Missed count slots: those with a lease, those that another won,
	// and those that passed without a holder that this worker knows of.
	Allocated, Lost, Missed int
	// Failed counts attempts of this worker that failed, and workers that it has found gone without a word (see event.WorkerDied).
	// Skipped counts slots whose job was not begun because an earlier run went on, and GivenUp those that have
	// used up Job.MaxAttempts. None of it makes the worker unhealthy.
	Failed, Skipped, GivenUp int

	// DoneUntil is the end of the newest slot of this worker's schedule whose job is done, or was skipped by a run that
	// succeeded, in store time, as far as it knows; zero if none is.
	DoneUntil time.Time `json:",omitzero"`
	// Due is up to when the next slot after that may begin, in store time. If none is done, it is that of the slot which was
	// tried last before this worker came, or else of the first that this worker could begin. While a holder is known, it
	// is the end of that slot at least, and with Finish of the one after it, which a run may skip. Once it has passed, the job
	// hasn't been done for longer than its schedule allows.
	// Zero without a Job, or if it isn't known.
	Due time.Time `json:",omitzero"`

	// Mismatch says that another worker of the type has other slots, as ScheduleMismatch.Text does, for up
	// to a slot after the one that showed it; empty otherwise. It doesn't make the worker unhealthy.
	Mismatch string `json:",omitzero"`

	// Charges is what the store has billed for this worker's operations; nil if it bills
	// nothing.
	Charges Charges `json:",omitzero"`
}

// MarshalJSON leaves out slots, leases and times that are not known, and LastError if there
// is none; else LastError is its text. Durations are in nanoseconds.
func (s Status) MarshalJSON() ([]byte, error) {
	type plain Status // without this method
	text := ""
	if s.LastError != nil {
		text = s.LastError.Error()
	}
	return json.Marshal(struct {
		plain
		LastError string `json:",omitzero"`
	}{plain(s), text})
}

// Charges are sums by operation (append, tail, get, now, trim), in the unit of the store:
// request units for Cosmos DB.
type Charges map[string]float64

// Total is the sum over all operations.
func (c Charges) Total() float64 {
	sum := 0.0
	for _, op := range slices.Sorted(maps.Keys(c)) {
		sum += c[op]
	}
	return sum
}

func (c *Charges) add(op string, units float64) {
	if *c == nil {
		*c = Charges{}
	}
	(*c)[op] += units
}

// Healthy reports that the store has answered at least once, and not failed three times in
// a row just now, that the worker is not stopped or blocked, and that it is alive.
// Holding no lease is healthy. Use it for alerts and readiness. For a liveness probe use
// Alive, because a restart doesn't fix a store.
func (s Status) Healthy() bool {
	return !s.Stopped && s.Alive() && s.Blocked == "" && s.Failures < 3 && !s.StoreTime.IsZero()
}

// Alive is the pulse of the worker: it goes round, since it is stuck for less than StuckAfter, and its user code
// doesn't overrun. A restart of its process helps if not. A worker that has stopped is alive.
func (s Status) Alive() bool { return !s.Overrunning && s.Stuck < StuckAfter }

// String is one line for a person.
func (s Status) String() string {
	parts := []string{s.WorkerType, s.InstanceID}
	switch {
	case s.Stopped:
		parts = append(parts, "stopped")
	case s.Draining:
		parts = append(parts, "is told to stop")
	case s.Holding:
		parts = append(parts, "holding "+s.Lease.Slot.String())
	case s.Overrunning:
		parts = append(parts, "overrunning")
	case s.Contending.IsZero():
		parts = append(parts, "waiting for the store")
	default:
		parts = append(parts, "waiting for "+s.Contending.String())
	}
	if s.Blocked != "" {
		parts = append(parts, s.Blocked)
	}
	if s.Ineligible != "" {
		parts = append(parts, "not eligible: "+s.Ineligible)
	}
	if s.Mismatch != "" {
		parts = append(parts, s.Mismatch)
	}
	for _, c := range []struct {
		n    int
		what string
	}{{s.Missed, "missed"}, {s.Skipped, "skipped"}, {s.Failed, "failed"}, {s.GivenUp, "given up"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	for _, o := range s.Orders {
		parts = append(parts, o.String())
	}
	if s.Failures > 0 {
		parts = append(parts, fmt.Sprintf("%d failures: %v", s.Failures, s.LastError))
	}
	return strings.Join(parts, ": ")
}

// progress is how far a worker has come, for its Status: in short, since there may be many workers.
type progress struct {
	running, overrunning              bool
	draining, stopped                 bool
	won, contending                   slots.Slot
	failures, allocated, lost, missed int
	failed, skipped, givenUp          int
	first                             slots.Slot // the first one that the worker could begin in time
	effective                         int
	lastError, ineligible             error
	orders                            string
	charges                           Charges
	doneUntil                         time.Time
	foreign                           bool      // that is of a slot of another schedule
	read                              bool      // a head
	none                              bool      // of whose slots anybody has had one
	tried                             time.Time // start of the slot that was attempted last by then, if none was done
	mismatch                          machine.Mismatched
}

// Status returns what the worker is doing. It doesn't ask the store, and never blocks for long.
func (w *WorkerLease) Status() Status {
	if !w.started() {
		return Status{Stopped: true}
	}
	w.mu.Lock()
	p := w.progress
	s := Status{
		WorkerType: w.options.WorkerType, InstanceID: w.options.InstanceID,
		Running: p.running, Overrunning: p.overrunning, Won: p.won, Contending: p.contending, Draining: p.draining, Stopped: p.stopped,
		Failures: p.failures, LastError: p.lastError, Allocated: p.allocated, Lost: p.lost, Missed: p.missed, Failed: p.failed, Skipped: p.skipped, GivenUp: p.givenUp, Effective: p.effective, DoneUntil: p.doneUntil, Charges: maps.Clone(p.charges),
	}
	if h := w.held(); h != nil {
		s.Holding, s.Running, s.Lease = true, h.atWork(), h.lease()
	}
	if p.ineligible != nil {
		s.Ineligible = p.ineligible.Error()
	}
	obstacles := w.obstacles
	orders := store.Record{Orders: p.orders}
	w.mu.Unlock()
	s.Due = w.dueBy(p)
	s.Warning = w.client.warning()
	why := "its clock has jumped"
	if now := w.now(); now.Known() {
		s.StoreTime, s.Uncertainty = now.Mid(), now.Uncertainty()
		if p.none && s.StoreTime.Before(p.first.Start) {
			s.First = p.first
		}
		s.Orders = orders.OrdersAt(now.Earliest)
		if m := p.mismatch; m.Schedule != "" && s.StoreTime.Before(m.Theirs.End.Add(max(m.Theirs.Length(), m.Ours.Length()))) {
			s.Mismatch = event.ScheduleMismatch{Ours: w.options.Schedule.String(), Theirs: m.Schedule, Holder: m.Holder, OurSlot: m.Ours, TheirSlot: m.Theirs}.Text()
		}
		for _, o := range s.Orders {
			if w.machine.Bars(o) {
				s.Paused = o.String()
				break
			}
		}
		w.client.mu.Lock()
		s.SampleAge = w.client.line.Age(w.client.local())
		if w.client.line.InQuestion() {
			why = "its answers contradict each other"
		}
		w.client.mu.Unlock()
	}
	s.Blocked = obstacles.text(s.StoreTime, s.Uncertainty, why)
	var waitsFor string
	if s.Stuck, waitsFor = w.stuck(); s.Stuck >= StuckAfter {
		s.Blocked = fmt.Sprintf("it has been stuck for %v: %s has not returned", s.Stuck.Round(time.Second), waitsFor)
	}
	return s
}

// Overdue is how long ago Due has passed; 0 if it hasn't, and while an operator has paused the worker type.
func (s Status) Overdue() time.Duration {
	paused := slices.ContainsFunc(s.Orders, func(o store.Order) bool { return o.Kind == store.OrderPause })
	if s.Due.IsZero() || paused {
		return 0
	}
	return max(0, s.StoreTime.Sub(s.Due))
}

// obstacles are why nothing can begin although the store answers.
type obstacles struct {
	timeUnknown bool
	poison      int64 // its seq
	block       machine.Block
	lost        int64     // the seq of a record that is gone
	unsure      time.Time // up to when others may work under what was lost
}

// text is Status.Blocked at a time; why is why that is uncertain.
func (o obstacles) text(now time.Time, uncertainty time.Duration, why string) string {
	switch {
	case o.timeUnknown:
		return fmt.Sprintf("store time is unknown by ±%v, because %s", round(uncertainty), why)
	case o.poison != 0:
		return fmt.Sprintf("record %d can't be obeyed", o.poison)
	case o.lost != 0 && now.Before(o.unsure):
		return fmt.Sprintf("the store went back: record %d is gone, and another worker may still work by it, so nothing is claimed before %s", o.lost, store.Format(o.unsure))
	case now.Before(o.unsure):
		return fmt.Sprintf("the store's history has another name: another worker may still work by records that it lost, so nothing is claimed before %s", store.Format(o.unsure))
	case o.block.Seq != 0 && now.Before(o.block.Until) && o.block.Done:
		return fmt.Sprintf("record %d says that all slots up to %s are done", o.block.Seq, store.Format(o.block.Until))
	case o.block.Seq != 0 && now.Before(o.block.Until):
		return fmt.Sprintf("blocked until %s by record %d, whose window lasts until then", store.Format(o.block.Until), o.block.Seq)
	}
	return ""
}

// dueBy is Status.Due.
func (w *WorkerLease) dueBy(p progress) time.Time {
	slot := p.first
	if tried := w.options.Schedule.At(p.tried); !p.tried.IsZero() && tried.Start.Before(slot.Start) {
		slot = tried
	}
	if !p.doneUntil.IsZero() {
		first := slot
		if slot = w.options.Schedule.At(p.doneUntil); slot.Start.Before(p.doneUntil) {
			slot = w.options.Schedule.Next(slot.Start)
		}
		if p.foreign && slot.Start.Before(first.Start) {
			slot = first // By this schedule nothing was due before.
		}
	}
	if w.options.Job == nil || slot.IsZero() {
		return time.Time{}
	}
	due := w.machine.StartBy(slot)
	if _, held := w.Holder(); held {
		if w.options.Job.Overrun == Finish {
			slot = w.options.Schedule.Next(slot.Start) // Its run may go on into that.
		}
		if due.Before(slot.End) {
			due = slot.End
		}
	}
	return due
}

// publish makes the state visible to Status.
func (w *WorkerLease) publish(latest time.Time) {
	s := &w.state
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unreleased = s.Unreleased(latest)
	p := &w.progress
	h := w.active.Load()
	holding := h != nil && !s.Hold.Held.IsZero() && h.term.Load().Claim == s.Hold.Held.Claim
	p.running, p.overrunning = s.Hold.Running, s.Hold.Running && s.Hold.Held.IsZero() && s.Hold.Overran
	p.doneUntil, p.foreign = w.machine.DoneUntil(s.View.Carried), w.machine.Foreign(s.View.Carried)
	if !p.read && !s.View.ReadAt.IsZero() {
		p.read, p.tried = true, s.View.Carried.Undone()
	}
	p.none = !s.View.HeadReadAt.Fixed.IsZero() && s.View.Carried.Slot.IsZero()
	p.mismatch = s.View.Mismatch
	p.won, p.contending, p.first = s.Hold.Next.Slot, s.Bid.Slot, s.Bid.First
	if !p.first.IsZero() && !p.first.Start.After(s.Bid.Late) {
		p.first = w.machine.Schedule.Next(p.first.Start) // It came too late for that.
	}
	p.orders = s.View.Carried.Orders
	p.failures, p.effective = s.Retries.Failures, w.machine.Effective(s)
	if w.attendee != nil {
		w.attendee.publish(&w.machine, s, holding)
	}
	o := &w.obstacles
	*o = obstacles{timeUnknown: s.Clock.Unknown(), poison: s.View.Watch.Seq, block: s.View.Block, unsure: s.View.Unsure}
	if s.View.Loss.Told {
		o.lost = s.View.Loss.Was.Seq
		if o.unsure.Before(s.View.Loss.Until) {
			o.unsure = s.View.Loss.Until
		}
	}
	p.stopped = s.Bid.Stage == machine.Halted
	p.draining = (s.Draining || s.Stopping) && !p.stopped
}
