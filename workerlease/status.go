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
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Status is what a worker is doing, as of its last step.
type Status struct {
	WorkerType string
	InstanceID string
	// Holding says that a lease is held, and Lease which.
	Holding bool
	Lease   Lease `json:",omitzero"`
	// Running says that a callback has not returned. Overrunning says that its lease is
	// over nevertheless, so that the worker claims nothing.
	Running, Overrunning bool
	// Won is a slot that was won and has not begun; zero if there is none.
	Won slots.Slot `json:",omitzero"`
	// Contending is the slot that the worker tries to win, or whose claims it waits for;
	// zero until the store has answered.
	Contending slots.Slot `json:",omitzero"`
	// Stopped says that the worker has ended.
	Stopped bool

	// StoreTime is the best guess of store time when Status was called, and Uncertainty
	// how far it may be off; zero until the store has answered.
	StoreTime   time.Time `json:",omitzero"`
	Uncertainty time.Duration
	// Blocked says why nothing can begin although the store answers: its time is in
	// question, the newest record of the ledger can't be obeyed, or it leaves nothing to claim
	// for more than a day after the slot. It is empty otherwise.
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
	// Warning is a shortcoming that the store describes (see store.Warner); empty if there is
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

	// DoneUntil is up to when the jobs of all slots are done, in store time, as far as this worker
	// knows; zero if none is.
	DoneUntil time.Time `json:",omitzero"`

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
// a row just now, that the worker is not stopped or blocked, and that its user code doesn't
// overrun.
// Holding no lease is healthy. Use it for alerts and readiness. For a liveness probe use
// Overrunning alone, because a restart doesn't fix a store.
func (s Status) Healthy() bool {
	return !s.Stopped && !s.Overrunning && s.Blocked == "" && s.Failures < 3 && !s.StoreTime.IsZero()
}

// String is one line for a person.
func (s Status) String() string {
	parts := []string{s.WorkerType, s.InstanceID}
	switch {
	case s.Stopped:
		parts = append(parts, "stopped")
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
	held                              *activeLease // nil: none is
	running, overrunning, stopped     bool
	won, contending                   slots.Slot
	failures, allocated, lost, missed int
	effective                         int
	lastError, ineligible             error
	orders                            string
	charges                           Charges
	doneUntil                         time.Time
}

// Status returns what the worker is doing. It asks nobody, and never blocks for long.
func (w *WorkerLease) Status() Status {
	w.mu.Lock()
	p := w.progress
	s := Status{
		WorkerType: w.options.WorkerType, InstanceID: w.options.InstanceID,
		Holding: p.held != nil, Running: p.running, Overrunning: p.overrunning, Won: p.won, Contending: p.contending, Stopped: p.stopped,
		Failures: p.failures, LastError: p.lastError, Allocated: p.allocated, Lost: p.lost, Missed: p.missed, Effective: p.effective, DoneUntil: p.doneUntil, Charges: maps.Clone(p.charges),
	}
	if s.Holding {
		s.Lease = p.held.lease()
	}
	if p.ineligible != nil {
		s.Ineligible = p.ineligible.Error()
	}
	timeUnknown, poison, block := w.timeUnknown, w.poison, w.block
	orders := store.Record{Orders: p.orders}
	w.mu.Unlock()
	s.Warning = w.client.warning()
	why := "its clock has jumped"
	if now := w.now(); now.Known() {
		s.StoreTime, s.Uncertainty = now.Mid(), now.Uncertainty()
		s.Orders = orders.OrdersAt(now.Earliest)
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
	switch {
	case timeUnknown:
		s.Blocked = fmt.Sprintf("store time is unknown by ±%v, because %s", round(s.Uncertainty), why)
	case poison != 0:
		s.Blocked = fmt.Sprintf("record %d can't be obeyed", poison)
	case block.Seq != 0 && s.StoreTime.Before(block.Until) && block.Done:
		s.Blocked = fmt.Sprintf("record %d says that all slots up to %s are done", block.Seq, store.Format(block.Until))
	case block.Seq != 0 && s.StoreTime.Before(block.Until):
		s.Blocked = fmt.Sprintf("blocked until %s by record %d, whose window lasts until then", store.Format(block.Until), block.Seq)
	}
	return s
}

// publish makes the state visible to Status. A lease that begins by the actions is counted in the same
// step: who sees Holding sees it in Allocated.
func (w *WorkerLease) publish(latest time.Time, actions ...machine.Action) {
	s := &w.state
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unreleased = s.Unreleased(latest)
	p := &w.progress
	for _, a := range actions {
		if tell, ok := a.(machine.Tell); ok && tell.Note.What == machine.Allocated {
			p.allocated++
		}
	}
	p.held = nil
	if h := w.active.Load(); h != nil && !s.Hold.Held.IsZero() && h.term.Load().Claim == s.Hold.Held.Claim {
		p.held = h
		h.done.Store(w.machine.Once && w.machine.Rules.IsDone(s.View.Carried, h.term.Load().Slot))
	}
	p.running, p.overrunning = s.Hold.Running, s.Hold.Running && s.Hold.Held.IsZero() && s.Hold.Overran
	p.doneUntil = s.View.Carried.DoneUntil
	p.won, p.contending = s.Hold.Next.Slot, s.Bid.Slot
	p.orders = s.View.Carried.Orders
	p.failures, p.effective = s.Retries.Failures, w.machine.Effective(s)
	if w.attendee != nil {
		w.attendee.publish(&w.machine, s, p.held != nil)
	}
	w.timeUnknown, w.poison, w.block = s.Clock.Unknown(), s.View.Watch.Seq, s.View.Block
	p.stopped = s.Bid.Stage == machine.Halted
}
