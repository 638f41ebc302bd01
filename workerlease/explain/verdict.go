package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Verdict is why a worker did or didn't get the slot.
type Verdict struct {
	InstanceID, Group string
	// InRoster says that Presence is its newest word. Without it, the worker is known by records only.
	InRoster bool
	Presence store.Presence
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
	// Before says, for SamePriority, that the worker that had the slot had the one before, too.
	Before bool
}

func byInstance(a, b Verdict) int {
	return cmp.Or(strings.Compare(a.InstanceID, b.InstanceID), strings.Compare(a.Presence.ID, b.Presence.ID))
}

// grace is how much later than announced a presence may come: workerlease.IsPresent allows for it.
const grace = 5 * time.Second

// judge says why a worker did or didn't get the slot. What is sure is looked at first.
func (x *asked) judge(p store.Presence) Verdict {
	v := Verdict{InstanceID: p.InstanceID, Group: p.Group, InRoster: true, Presence: p, Reason: Unknown}
	slot, h := x.e.Slot, x.contested()
	settle := func(r Reason, certain bool, detail string) Verdict {
		v.Reason, v.Certain, v.Detail = r, certain, detail
		return v
	}
	ordered := func(r Reason, o *store.Order) Verdict {
		v.Order = o
		return settle(r, true, "")
	}
	if slot.IsZero() || x.e.Unread {
		return v
	}
	for i, term := range x.e.Terms {
		if isOf(term.Record, p) {
			v.Term = &x.e.Terms[i]
			return settle(Had, true, "")
		}
	}
	due := p.Next.Add(grace)
	about := p.Missed != "" && !p.MissedFrom.After(slot.Start) && slot.Start.Before(p.MissedUntil) && !p.MissedFrom.IsZero()
	own, nobody := strings.CutPrefix(p.Missed, "nobody had it: ")
	drain, pause, prefer := x.ordered(store.OrderDrain, p.Host), x.ordered(store.OrderPause, ""), x.ordered(store.OrderPrefer, "")
	switch {
	case p.Phase == store.PhaseStopped && (p.Seen.Before(slot.Start) || x.e.When != Past):
		return settle(Stopped, true, "")
	case !p.Since.IsZero() && p.Since.After(x.decided()) && (p.Since.After(slot.Start) || h != nil):
		return settle(NotStarted, true, "")
	case due.Before(slot.Start) && due.Before(x.Now):
		return settle(Absent, true, "")
	case about && nobody:
		reason, known := said[own]
		if !known {
			reason = Unknown
		}
		if reason == NotEligible {
			own = cmp.Or(p.Ineligible, own)
		}
		switch { // The worker doesn't say who ordered it, and when.
		case reason == Paused:
			v.Order = pause
		case reason == Drained && p.Host != "":
			v.Order = drain
		}
		return settle(reason, true, own)
	case pause != nil && h == nil:
		return ordered(Paused, pause)
	case p.Host != "" && drain != nil:
		return ordered(Drained, drain)
	case otherSchedule(p.Schedule, slot):
		return settle(OtherSchedule, true, p.Schedule)
	case x.fresh(p) && p.Ineligible != "":
		return settle(NotEligible, !p.Seen.Before(x.decided()), p.Ineligible)
	case x.fresh(p) && 2*p.Uncertainty >= slot.Length():
		return settle(ClockUnfit, !p.Seen.Before(x.decided()), "")
	case h == nil && x.e.When != Past && due.Before(x.Now), !about && p.Seen.Before(slot.Start) && due.Before(x.Now):
		return settle(Absent, x.e.When == Future, "")
	case h == nil && x.e.When != Past:
		return settle(Contends, true, "")
	case h == nil:
		return v
	case prefer != nil && h.Record.InstanceID == prefer.Target:
		return ordered(Preferred, prefer)
	case h.Record.Token < h.Slot.Start.UnixMilli():
		return settle(Continued, true, "")
	case p.Failures > 0 && p.FailedIn.Before(slot.Start) && slot.Start.Before(p.StepsBackUntil):
		return settle(SteppedBack, true, "")
	}
	v.Reason, v.Certain = x.lost(p, h.Record.Priority), about || x.fresh(p)
	v.Before = v.Reason == SamePriority && x.before != nil && sameHolder(x.before.Record, h.Record)
	if !v.Certain && v.Reason != HigherPriority {
		v.Reason = Unknown // By what it says now it would have got it.
	}
	return v
}

// lost is why a worker lost the slot, by its priority and that of the worker that had it.
func (x *asked) lost(p store.Presence, winner int) Reason {
	switch own := min(max(p.Effective, priority.Highest), priority.Lowest); {
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
