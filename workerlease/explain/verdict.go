package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Verdict is why a worker did or didn't get the slot.
type Verdict struct {
	InstanceID, Group string
	// InRoster says that Presence is its newest word. Without it, the worker is known by records only.
	InRoster bool
	Presence store.Presence
	// Standing is what it is at Question.Now, if it is in the roster.
	Standing workerlease.Standing
	Reason   Reason
	// Certain says that a record, or the worker itself, says so of this slot, or that it can't have
	// been otherwise. Otherwise it follows if what the worker says now was so then, too.
	Certain bool
	// Detail is what the worker says of it, in its words, or empty.
	Detail string
	// Order is that of the operator that is the reason, or nil.
	Order *store.Order
	// Term is what the worker had of the slot, or nil.
	Term *history.Entry
	// Silent is when a lease that the worker had before the slot ended without a word; zero if it was seen since, or had none.
	Silent time.Time
	// Before says, for SamePriority, that the worker that had the slot had the one before, too, and this one didn't; OwnBefore that
	// this worker had that, and the other didn't, so that by default its turn came first.
	Before, OwnBefore bool
}

func byInstance(a, b Verdict) int {
	return cmp.Or(strings.Compare(a.InstanceID, b.InstanceID), strings.Compare(a.Presence.ID, b.Presence.ID))
}

// settle sets why a worker did or didn't get the slot.
func (v *Verdict) settle(r Reason, certain bool, detail string) (settled bool) {
	v.Reason, v.Certain, v.Detail = r, certain, detail
	return true
}

// ordered is settle by an operator's order.
func (v *Verdict) ordered(r Reason, o *store.Order) (settled bool) {
	v.Order = o
	return v.settle(r, true, "")
}

// judge says why a worker did or didn't get the slot. What is sure is looked at first.
func (x *asked) judge(p store.Presence) Verdict {
	v := Verdict{InstanceID: p.InstanceID, Group: p.Group, InRoster: true, Presence: p, Standing: workerlease.StandingOf(p, x.rows, x.Now), Reason: Unknown}
	if x.e.Slot.IsZero() || x.e.Unread {
		return v
	}
	for i, term := range x.e.Terms {
		if isOf(term.Record, p) {
			v.Term = &x.e.Terms[i]
			v.settle(Had, true, "")
			return v
		}
	}
	v.Silent = x.silent(p)
	c := x.candidate(p)
	if x.e.When != Past && v.Standing.There() {
		c.due = x.Now // The ledger may show it where the roster doesn't.
	}
	for _, look := range []func(*Verdict) bool{c.absent, c.says, c.kept, c.unheld, c.lost} {
		if look(&v) {
			break
		}
	}
	return v
}

// silent is Verdict.Silent.
func (x *asked) silent(p store.Presence) time.Time {
	for _, e := range slices.Backward(x.rows) {
		had := e.Record.Kind == store.KindGrant && e.State != history.Skipped && e.Slot.Start.Before(x.e.Slot.Start)
		if !had || p.Group != "" || !isOf(e.Record, p) { // Of a group, others go on.
			continue
		}
		if e.Silent() && !p.Seen.After(e.Window.End) {
			return e.Window.End
		}
		break
	}
	return time.Time{}
}

// candidate is a worker that didn't have the slot, and what is known of it. Its methods look at one thing each, and
// report whether that settles the verdict.
type candidate struct {
	*asked
	store.Presence

	h     *history.Entry // to which it lost
	due   time.Time      // when it should have written again
	about bool           // what it says of a slot that it missed is about this one
	// nobody says that it knows of no holder, because of why.
	nobody               bool
	why                  string
	drain, pause, prefer *store.Order
}

func (x *asked) candidate(p store.Presence) *candidate {
	c := &candidate{asked: x, Presence: p, h: x.contested(), due: p.Next.Add(workerlease.PresenceGrace)}
	c.about = p.Missed != "" && !p.MissedFrom.After(x.e.Slot.Start) && x.e.Slot.Start.Before(p.MissedUntil) && !p.MissedFrom.IsZero()
	c.why, c.nobody = strings.CutPrefix(p.Missed, "nobody had it: ")
	c.drain, c.pause, c.prefer = x.ordered(store.OrderDrain, p.Host), x.ordered(store.OrderPause, ""), x.ordered(store.OrderPrefer, "")
	return c
}

// absent: the worker was not there, or its job still ran.
func (c *candidate) absent(v *Verdict) bool {
	slot := c.e.Slot
	wentBack := c.about && c.nobody && said[c.why] == WentBack // What it had of the slot before is lost, too.
	switch {
	case c.Phase == store.PhaseStopped && (c.Seen.Before(slot.Start) || c.e.When != Past):
		return v.settle(Stopped, true, "")
	case !wentBack && !c.Since.IsZero() && c.Since.After(c.decided()) && (c.Since.After(slot.Start) || c.h != nil):
		if c.about && !c.nobody { // It joined in mid-slot, and says what it found.
			return v.settle(NotStarted, true, c.Missed)
		}
		return v.settle(NotStarted, true, "")
	case c.due.Before(slot.Start) && c.due.Before(c.Now):
		return v.settle(Absent, true, "")
	case !v.Silent.IsZero() && !c.about && (c.e.Skipped == nil || v.Silent.Before(slot.Start)):
		return v.settle(Absent, true, "")
	case c.e.Skipped != nil:
		return v.settle(StillRunning, true, "")
	}
	return false
}

// says: the worker itself says why nobody had the slot.
func (c *candidate) says(v *Verdict) bool {
	if !c.about || !c.nobody {
		return false
	}
	reason, known := said[c.why]
	if !known {
		reason = Unknown
	}
	detail := c.why
	if reason == NotEligible {
		detail = cmp.Or(c.Ineligible, detail)
	}
	switch { // The worker doesn't say who ordered it, and when.
	case reason == Paused:
		v.Order = c.pause
	case reason == Drained && c.Host != "":
		v.Order = c.drain
	}
	return v.settle(reason, true, detail)
}

// kept: an order, its schedule, its health or its clock kept the worker from claiming.
func (c *candidate) kept(v *Verdict) bool {
	slot := c.e.Slot
	switch {
	case c.pause != nil && c.h == nil:
		return v.ordered(Paused, c.pause)
	case c.Host != "" && c.drain != nil:
		return v.ordered(Drained, c.drain)
	case !c.e.Triggered && otherSchedule(c.Schedule, slot):
		return v.settle(OtherSchedule, true, c.Schedule)
	case c.fresh(c.Presence) && c.Ineligible != "":
		return v.settle(NotEligible, !c.Seen.Before(c.decided()), c.Ineligible)
	case c.fresh(c.Presence) && 2*c.Uncertainty >= slot.Length():
		return v.settle(ClockUnfit, !c.Seen.Before(c.decided()), "")
	}
	return false
}

// unheld: the worker may have died before, or nobody has the slot, or had it.
func (c *candidate) unheld(v *Verdict) bool {
	switch {
	case c.h == nil && c.e.When != Past && v.Standing == workerlease.Gone, !c.about && c.Seen.Before(c.e.Slot.Start) && c.due.Before(c.Now):
		return v.settle(Absent, c.e.When == Future, "")
	case c.h != nil:
		return false
	case c.e.When == Past:
		return true // It isn't known.
	}
	return v.settle(Contends, true, "")
}

// lost: another worker was preferred, went on, or was first.
func (c *candidate) lost(v *Verdict) bool {
	winner := c.h.Record
	switch {
	case c.prefer != nil && winner.InstanceID == c.prefer.Target:
		return v.ordered(Preferred, c.prefer)
	case winner.Token < c.h.Slot.Start.UnixMilli():
		return v.settle(Continued, true, "")
	case c.Failures > 0 && c.FailedIn.Before(c.e.Slot.Start) && c.e.Slot.Start.Before(c.StepsBackUntil):
		return v.settle(SteppedBack, true, "")
	}
	v.Reason, v.Certain = c.byPriority(winner.Priority), c.about || c.fresh(c.Presence)
	if v.Reason == SamePriority {
		its := c.hadBefore(func(e history.Entry) bool { return sameHolder(e.Record, winner) })
		own := c.hadBefore(func(e history.Entry) bool { return isOf(e.Record, c.Presence) && !e.Silent() })
		v.Before, v.OwnBefore = its && !own, own && !its // Each that had an attempt there has the first turn.
	}
	if !v.Certain && v.Reason != HigherPriority {
		v.Reason = Unknown // By what it says now it would have got it.
	}
	return true
}

// hadBefore reports that a term of the newest slot before is one of these.
func (x *asked) hadBefore(is func(history.Entry) bool) bool {
	return x.before != nil && slices.ContainsFunc(x.rows, func(e history.Entry) bool {
		had := e.Record.Kind == store.KindGrant && e.State != history.Poison && e.State != history.Skipped
		return had && e.Slot == x.before.Slot && is(e)
	})
}

// byPriority is why the worker lost the slot, by its priority and that of the winner.
func (c *candidate) byPriority(winner int) Reason {
	switch own := min(max(c.Effective, priority.Highest), priority.Lowest); {
	case own > winner:
		return HigherPriority
	case own == winner:
		return SamePriority
	}
	return LateInTurn
}

// fresh reports that what a worker says of itself may be of this slot: it said that from when claims
// opened to the end of the slot, or nothing newer, and the slot isn't over.
func (x *asked) fresh(p store.Presence) bool {
	lead := priority.Lead(x.e.Slot.Length(), 0)
	return !p.Seen.Before(x.e.Slot.Start.Add(-lead)) && !p.Seen.After(x.e.Slot.End) || x.e.When != Past
}

// otherSchedule reports that a schedule has no such slot. One that can't be read may have it.
func otherSchedule(text string, slot slots.Slot) bool {
	schedule, err := slots.Parse(text)
	return err == nil && schedule.At(slot.Start) != slot
}

// isOf reports that a record is a worker's, or its group's.
func isOf(r store.Record, p store.Presence) bool {
	if r.Group != p.Group {
		return false
	}
	return r.Group != "" || r.InstanceID == p.InstanceID && (r.Worker.Host == "" || r.Worker.Host == p.Host && r.Worker.PID == p.PID)
}

// sameHolder reports that two records are of one holder, as far as names tell.
func sameHolder(a, b store.Record) bool {
	return a.Group == b.Group && (a.Group != "" || a.InstanceID == b.InstanceID)
}

// addHolders adds those that had the slot, and aren't in the roster.
func (x *asked) addHolders() {
	for i, term := range x.e.Terms {
		r := term.Record
		known := func(v Verdict) bool {
			return v.Term != nil && sameHolder(v.Term.Record, r) && v.InstanceID == r.InstanceID
		}
		if !slices.ContainsFunc(x.e.Workers, known) {
			x.e.Workers = append(x.e.Workers, Verdict{InstanceID: r.InstanceID, Group: r.Group, Reason: Had, Certain: true, Term: &x.e.Terms[i]})
		}
	}
}
