package machine

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Operators have levers: orders in the head, which each record repeats until they end. They
// decide whether a worker claims, when its turn is, and whether it goes on. They give nobody a
// right: a worker that doesn't know them, or hears of them late, costs order and never safety.
//
// Appends are ordered. A claim stands right after the head that was read for it: once a pause
// is stored, a claim that was decided without it meets it at its key, and is decided anew.

// Levers are what the orders that a worker knows of mean to it. Each is in force until its
// time has surely come; the zero time is none.
type Levers struct {
	Pause time.Time // nobody claims
	Drain time.Time // no worker of this host claims
	// PauseHeld and DrainHeld say that what is held is given up, too.
	PauseHeld, DrainHeld bool

	Prefer      string    // the InstanceID that goes first, up to PreferUntil
	PreferAt    time.Time // when that was ordered
	PreferUntil time.Time
	PreferNow   bool // a holder that isn't preferred makes room within its slot

	Release      string // the claim whose holder is asked to give it up, up to ReleaseUntil
	ReleaseUntil time.Time
}

// Bars reports that an order in force keeps the worker from claiming.
func (c *Config) Bars(o store.Order) bool {
	return o.Kind == store.OrderPause || o.Kind == store.OrderDrain && o.Target == c.Worker.Host
}

// obey is what orders mean to a worker of a host.
func obey(orders []store.Order, host string) (l Levers) {
	for _, o := range orders {
		switch o.Kind {
		case store.OrderPause:
			l.Pause, l.PauseHeld = o.Until, o.Now
		case store.OrderPrefer:
			l.Prefer, l.PreferAt, l.PreferUntil, l.PreferNow = o.Target, o.At, o.Until, o.Now
		case store.OrderRelease:
			l.Release, l.ReleaseUntil = o.Target, o.Until
		case store.OrderDrain:
			if o.Target == host {
				l.Drain, l.DrainHeld = o.Until, o.Now
			}
		}
	}
	return l
}

// repeated are the orders that a record repeats: those that may be in force at a time, the
// earliest by its writer's estimate. No store gives what can't be read,
// and none takes it.
func repeated(text string, earliest time.Time) string {
	orders, err := store.ParseOrders(text)
	if err != nil {
		return ""
	}
	kept := slices.DeleteFunc(slices.Clone(orders), func(o store.Order) bool { return !o.InForce(earliest) })
	if len(kept) == len(orders) {
		return text
	}
	if shorter, err := store.FormatOrders(kept); err == nil {
		return shorter
	}
	return text
}

// asks reports that the holder of a term is asked to give it up.
func asks(l Levers, t Term) bool { return l.Release == t.Claim }

// prefers is the priority of a worker by a preference, and whether it goes first among
// equals: the one that is preferred has the highest, and all others one lower than their own.
func prefers(preferred bool, p int, first bool, lowest int) (int, bool) {
	if preferred {
		return 0, true
	}
	return min(p+1, lowest), first
}

// hear takes in what a record says of orders. A preference that is newer than all that the
// worker has heard of is news to it, once.
func (x *step) hear() {
	v := &x.s.View
	v.Levers = Levers{}
	if v.Carried.Orders == "" {
		return
	}
	orders, _ := store.ParseOrders(v.Carried.Orders)
	orders = slices.DeleteFunc(orders, func(o store.Order) bool { return !o.InForce(x.at.Now.Earliest) })
	v.Levers = x.m.Rules.Obey(orders, x.m.Worker.Host)
	if l := v.Levers; l.PreferAt.After(v.Preferred) {
		v.Preferred, v.Unheeded, x.news = l.PreferAt, true, true
	}
}

// lastsTo reports that an order up to a time may be in force.
func lastsTo(until time.Time, now timeline.Interval) bool {
	return !until.IsZero() && now.Earliest.Before(until)
}

// barred is up to when the worker may claim nothing, and why; zero: it may.
func (f facts) barred() (until time.Time, why Reason) {
	l := &f.s.View.Levers
	if lastsTo(l.Drain, f.at.Now) {
		until, why = l.Drain, Drained
	}
	if lastsTo(l.Pause, f.at.Now) && !l.Pause.Before(until) {
		until, why = l.Pause, Paused
	}
	return until, why
}

// givesWay reports that another worker is preferred to this one.
func (f facts) givesWay() bool {
	return f.preference() != "" && f.preference() != f.m.InstanceID
}

// preference is the InstanceID that is preferred; empty: none is.
func (f facts) preference() string {
	if l := &f.s.View.Levers; lastsTo(l.PreferUntil, f.at.Now) {
		return l.Prefer
	}
	return ""
}

// stoppedBy is why a holder is to give up a term that it knows, by orders; 0: it isn't. A group's
// members may be at work under its term: it stands, but none of them works on in a pause.
func (f facts) stoppedBy(t Term) Reason {
	l := &f.s.View.Levers
	switch {
	case t.IsZero():
	case l.PauseHeld && lastsTo(l.Pause, f.at.Now):
		return Paused
	case l.DrainHeld && lastsTo(l.Drain, f.at.Now):
		return Drained
	case t.Own && lastsTo(l.ReleaseUntil, f.at.Now) && f.m.Rules.Asks(*l, t):
		return Ordered
	}
	return 0
}

// heedOrders gives up what is held or won, if an order says so. The rest is released once the
// user's code has returned. A head that is read later shows what became of it.
func (x *step) heedOrders() {
	h, s := &x.s.Hold, x.s
	if s.Stopping {
		return
	}
	if why := x.stoppedBy(h.Next); why != 0 {
		x.note(Note{What: Missed, Slot: h.Next.Slot, Until: h.Next.Slot.End, Why: why})
		x.giveBack(h.Next, true)
		s.Bid.VoidClaim, h.Next, h.Freed = h.Next.Claim, Term{}, slots.Slot{}
	}
	why := x.stoppedBy(h.Held)
	if room := x.news && s.View.Levers.PreferNow && x.givesWay(); why == 0 && room && x.m.Failover > 0 && h.Held.Own && x.m.Group == "" {
		why = Ordered
	}
	if h.holding() && why != 0 {
		x.stepDown(why)
		h.Freed = slots.Slot{} // It doesn't turn back to the slot at once: a standby takes the rest.
	}
}

// intoNext reports that an extension of the term that is held would go on into the bid's slot.
func (f facts) intoNext() bool { return !f.s.Hold.Held.End.After(f.s.Bid.Slot.Start) }

// heldBack reports that an order keeps the worker from appending a claim, or an extension into
// another slot, after the head, and turns the bid to when that may be otherwise.
func (x *step) heldBack() bool {
	b, now := &x.s.Bid, x.at.Now
	if until, why := x.barred(); !until.IsZero() {
		x.sitOut(until, why)
		return true
	}
	if !x.givesWay() || x.m.StepsBack(x.s) {
		return false
	}
	from := x.behind()
	if !from.After(now.Mid()) || !from.Before(x.m.abandoned(b.Slot)) {
		return false
	}
	if b.Role == Extender {
		b.Role = Claimant
	}
	b.wait(from, timeline.Mid)
	return true
}

// behind is up to when the worker lets all others claim before it, because it has heard of a preference: the others,
// and the preferred one, may know of none before their turns. So it comes after all turns, once: in the first slot
// that leaves time for that.
func (x *step) behind() time.Time {
	b, v, now := &x.s.Bid, &x.s.View, x.at.Now
	if !v.Unheeded {
		return v.Behind // A release of its own may have come in between.
	}
	last := x.lastTurn(x.turns())
	from := b.Slot.Start.Add(last - x.m.lead(b.Slot))
	if b.Role == Standby || !now.Mid().Before(b.Slot.Start) {
		from = now.Mid().Add(last)
	}
	if from.Before(x.m.abandoned(b.Slot)) {
		v.Unheeded, v.Behind = false, from
	}
	return from
}

// sitOut waits for the end of what bars the worker from the bid's slot, if the slot, or a rest
// of it that the worker takes, begins no sooner; else it turns to the next slot. It looks once at
// each slot, as one that has lost it does.
func (x *step) sitOut(until time.Time, why Reason) {
	b := &x.s.Bid
	if b.Role == Extender {
		b.Role = Claimant // The term that is held ends with its slot.
	}
	rests := x.m.Failover > 0 || x.m.JoinMidSlot
	waits := !x.m.Single // A single claim is for now or never.
	switch turn := until.Add(x.turn(false)); {
	case waits && (!until.After(b.Slot.Start) || rests) && turn.Before(x.m.abandoned(b.Slot)):
		b.wait(turn, timeline.Earliest)
		b.MissReason = why // should the slot be missed yet
	case waits && why == Drained && x.at.Now.Earliest.Before(b.Slot.Start):
		b.wait(b.Slot.Start, timeline.Earliest) // Others may have it by then.
		b.MissReason = why
	default:
		b.MissReason = why
		x.miss(b.Slot.End)
		x.next()
	}
}

// mayNotExtend reports that the head is to be read before an extension that may not be sent: into
// another slot, in a pause or while another worker is preferred.
func (f facts) mayNotExtend() bool {
	until, _ := f.barred()
	return f.intoNext() && (!until.IsZero() || f.givesWay())
}

// underNotes is the grant right below the records that change no term, which workers and operators append to
// it; head, if there is none.
func underNotes(head store.Record, below []store.Record) store.Record {
	if !notes(head.Kind) {
		return head
	}
	for _, r := range below {
		switch {
		case r.Claim != head.Claim || !r.WindowEnd.Equal(head.WindowEnd):
			return head
		case r.Kind == store.KindGrant:
			return r
		case !notes(r.Kind):
			return head
		}
	}
	return head
}

// notes reports that records of a kind change no term.
func notes(k store.Kind) bool {
	return k == store.KindOrder || k == store.KindOutcome || k == store.KindDone
}

// hidesTerm has more records read if the newest only say something of a term of one's own group, and don't
// reach down to its grant.
func (x *step) hidesTerm(records []store.Record) bool {
	v := &x.s.View
	if x.m.Group == "" || v.Asked >= lookBack || len(records) < v.Asked {
		return false
	}
	head, below := records[0], records[1:]
	last := below[len(below)-1]
	if !notes(head.Kind) || !notes(last.Kind) || last.Claim != head.Claim || head.Claim == x.s.Hold.Next.Claim || !x.joinable(head) {
		return false
	}
	v.Depth = lookBack
	return true
}

// joins reports that a grant is one's own group's, that what was said of it since doesn't close the slot, and that no
// order keeps its members from work.
func (f facts) joins(r, head store.Record) bool {
	closed := f.m.Once && head.Seq != r.Seq && f.m.Rules.IsDone(f.s.View.Carried, f.s.Bid.Slot)
	return r.Kind == store.KindGrant && f.joinable(r) && !closed && f.stoppedBy(Term{Seq: r.Seq, Claim: r.Claim}) == 0
}
