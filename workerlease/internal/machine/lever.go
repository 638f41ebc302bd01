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
		case store.OrderTrigger: // It is served by a machine of its own: see trigger.go.
		}
	}
	return l
}

// repeated are the orders that a record repeats: those that may be in force at a time, the
// earliest by its writer's estimate, and the trigger that was given when its writer serves that. No store gives what can't be read,
// and none takes it.
func repeated(text string, earliest, served time.Time) string {
	orders, err := store.ParseOrders(text)
	if err != nil {
		return ""
	}
	kept := slices.DeleteFunc(slices.Clone(orders), func(o store.Order) bool {
		return !o.InForce(earliest) && (o.Kind != store.OrderTrigger || !o.At.Equal(served))
	})
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
	var orders []store.Order
	if v.Carried.Orders != "" {
		orders, _ = store.ParseOrders(v.Carried.Orders)
		orders = slices.DeleteFunc(orders, func(o store.Order) bool { return !o.InForce(x.at.Now.Earliest) })
	}
	x.hearTriggers(orders, v.Carried.Seq)
	if len(orders) == 0 {
		return
	}
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
	if !x.givesWay() || x.m.Single || x.m.StepsBack(x.s) {
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

// sitOut waits for the end of what bars the worker from the bid's slot, or looks sooner whether that has
// ended, as long as anything of the slot may be claimed then; else it turns to the next slot.
func (x *step) sitOut(until time.Time, why Reason) {
	b := &x.s.Bid
	if b.Role == Extender {
		b.Role = Claimant // The term that is held ends with its slot.
	}
	waits := !x.m.Single // A single claim is for now or never.
	b.MissReason = why
	turn := x.turn(false)
	look := x.at.Now.Mid().Add(x.m.Rules.HearAgain(x.m.Failover))
	if by := b.Slot.Start.Add(turn); why == Drained && x.at.Now.Earliest.Before(b.Slot.Start) && by.Before(look) {
		look = by // Others may have it by then.
	}
	if by := until.Add(turn); by.Before(look) {
		look = by
	}
	if waits && look.Before(x.m.abandoned(b.Slot)) && !x.work(look).IsZero() {
		b.sitOut(look)
		return
	}
	x.miss(b.Slot.End)
	x.next()
}

// sitOut reads the head again at a time, or when a hint comes. Should the slot be missed yet, it is by the order.
func (b *Bid) sitOut(until time.Time) {
	why := b.MissReason
	b.wait(until, timeline.Earliest)
	b.Barred, b.MissReason = true, why
}

// hearAgain is within what a standby takes over from a holder that is dead, and within a minute where slots are
// long: the end of an order costs about as much of a slot as that.
func hearAgain(failover time.Duration) time.Duration {
	if failover == 0 {
		return time.Minute
	}
	return min(failover, time.Minute)
}

// sitsOut reports that the bid waits because an order keeps the worker from its slot.
func (m *Machine) sitsOut(s *State) bool {
	b := &s.Bid
	return b.Barred && b.Stage == Aiming && !m.blocked(s) && !s.Clock.Unknown() && s.View.Watch.Seq == 0
}

// mayNotExtend reports that the head is to be read before an extension that may not be sent: into
// another slot, in a pause or while another worker is preferred.
func (f facts) mayNotExtend() bool {
	until, _ := f.barred()
	return f.intoNext() && (!until.IsZero() || f.givesWay())
}
