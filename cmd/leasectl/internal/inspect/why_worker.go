package inspect

import (
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/explain"
	"github.com/slotlease/slotlease/workerlease/history"
)

// why is a verdict in a sentence or two.
func (a answer) why(v explain.Verdict) string {
	text := a.reason(v)
	if v.InRoster && !v.Certain && v.Reason != explain.Unknown {
		text = "Probably: " + text + fmt.Sprintf(" That is by what it said at %s.", a.second(v.Presence.Seen))
	}
	return text
}

// winner names the worker to which the others lost, with its priority.
func (a answer) winner() (name string, priority int) {
	e := a.Holder
	if e == nil && len(a.Terms) > 0 {
		e = &a.Terms[0]
	}
	if e == nil {
		return "nobody", 0
	}
	return holderOf(*e), e.Record.Priority
}

func (a answer) reason(v explain.Verdict) string {
	p, past := v.Presence, a.When == explain.Past
	is, has, isnt, winner, its := "is", "has", "isn't", "", 0
	if past {
		is, has, isnt = "was", "had", "wasn't"
	}
	winner, its = a.winner()
	own := fmt.Sprintf("Its priority is %d", p.Effective)
	if p.Effective != p.Priority {
		own += fmt.Sprintf(" at present, not its own %d", p.Priority)
		if p.Why != "" {
			own += ", because " + strings.TrimSuffix(p.Why, ".")
		}
	}
	switch v.Reason {
	case explain.Had:
		return a.had(v)
	case explain.HigherPriority:
		return fmt.Sprintf("%s; %s claimed with %d, and the lower number goes first.", own, winner, its)
	case explain.SamePriority:
		if v.Before {
			return fmt.Sprintf("%s, as that of %s, which had the slot before: by default it goes first among equals.", own, winner)
		}
		return fmt.Sprintf("%s, as that of %s, which came first: among equals chance decides, unless one had the slot before.", own, winner)
	case explain.LateInTurn:
		text := fmt.Sprintf("%s, and that of %s %d: its turn came first, and it did not claim in it.", own, winner, its)
		if p.Seen.Before(a.Slot.Start) {
			return text + fmt.Sprintf(" It was last seen at %s, before the slot began: it may have died since.", a.second(p.Seen))
		}
		return text + " Why isn't known: the ledger keeps no claims of those that lose."
	case explain.Continued:
		return fmt.Sprintf("The lease of %s went on from the slot before, so that there was nothing to claim.", winner)
	case explain.NotEligible:
		return fmt.Sprintf("It %s not eligible: %s.", is, strings.TrimSuffix(v.Detail, "."))
	case explain.ClockUnfit:
		return a.clockUnfit(v, past)
	case explain.Absent:
		return fmt.Sprintf("It %s absent: it was last seen at %s, and should have been seen again by %s. It died, or couldn't reach the store.", is, a.second(p.Seen), a.second(p.Next))
	case explain.Stopped:
		return fmt.Sprintf("It had stopped at %s.", a.second(p.Seen))
	case explain.NotStarted:
		return fmt.Sprintf("It had not started when the slot was decided: it began at %s. By default a worker waits for the next slot.", a.second(p.Since))
	case explain.Paused:
		if v.Order == nil {
			return "The worker type " + is + " paused."
		}
		return "The worker type " + is + " " + a.order(*v.Order) + "."
	case explain.Drained:
		if v.Order == nil {
			return "Its host " + is + " drained, as an operator ordered."
		}
		return "Its host " + strings.TrimPrefix(a.drained(*v.Order), "Host ")
	case explain.Preferred:
		if v.Order == nil {
			return "An operator ordered that: " + v.Detail + "."
		}
		return "The worker type " + is + " " + a.order(*v.Order) + "."
	case explain.Overran:
		return "Its code had not returned from an earlier slot, so that it claimed nothing."
	case explain.SteppedBack:
		return fmt.Sprintf("It stepped back, so that others went first until %s: its code had failed in %s in a row.", a.second(p.StepsBackUntil), counted(p.Failures, "slot"))
	case explain.OtherSchedule:
		return fmt.Sprintf("It %s another schedule, %q, which has no such slot. Give all workers of the type one.", has, v.Detail)
	case explain.Unreachable:
		return "It couldn't reach the store in time."
	case explain.Refused:
		return "The store refused its claim: " + v.Detail + "."
	case explain.Poisoned:
		if v.Detail == string(history.Poison) {
			return "The newest record couldn't be obeyed."
		}
		return "The newest record couldn't be obeyed: " + v.Detail + "."
	case explain.TooLate:
		return "Too little was left of the slot for it, or its process was paused."
	case explain.Contends:
		return fmt.Sprintf("It contends for it. %s.", own)
	case explain.NobodyThere, explain.Unknown:
	}
	return a.noIdea(v, isnt)
}

// clockUnfit says that a worker didn't know the time.
func (a answer) clockUnfit(v explain.Verdict, past bool) string {
	switch {
	case v.Detail != "":
		return "Its time was in question: " + v.Detail + "."
	case past:
		return fmt.Sprintf("It knew the store's time too inexactly for this slot: ±%s.", brief(v.Presence.Uncertainty))
	}
	return fmt.Sprintf("It knows the store's time too inexactly for this slot: ±%s.", brief(v.Presence.Uncertainty))
}

// had says what a worker had of the slot.
func (a answer) had(v explain.Verdict) string {
	have := "had"
	switch {
	case a.When == explain.Future:
		have = "has claimed"
	case a.Holder != nil && v.Term == a.Holder && a.When == explain.Now:
		have = "has"
	}
	text := fmt.Sprintf("It %s the slot.", have)
	if v.Group != "" {
		text = fmt.Sprintf("Its group %s the slot.", have)
	}
	if !v.InRoster {
		text += " It isn't in the roster: it keeps none there, or has stopped since."
	}
	// Of a group, another member may hold.
	if p := v.Presence; have == "has" && v.Group == "" && v.InRoster && p.Phase != store.PhaseStopped && !workerlease.IsPresent(p, a.at) {
		text += fmt.Sprintf(" It is absent: it was last seen at %s, and should have been seen again by %s. It died, or can't reach the store."+
			" If it died, leasectl release --force ends its lease, which otherwise lasts until %s.", a.second(p.Seen), a.second(p.Next), a.clock(v.Term.Window.End))
	}
	return text
}

// noIdea says that it isn't known why a worker didn't get the slot, and what else is.
func (a answer) noIdea(v explain.Verdict, isnt string) string {
	switch {
	case a.Unread || a.Slot.IsZero():
		return "What it did then isn't known."
	case !v.InRoster:
		return "It " + isnt + " among those that had this slot. It isn't in the roster, so that no more is known: it keeps none there, or has stopped since."
	case v.Presence.Missed != "":
		return fmt.Sprintf("It was there. What it did in this slot isn't known; of the newest slot that it didn't get it says: %s.", strings.TrimSuffix(v.Presence.Missed, "."))
	}
	return fmt.Sprintf("It was there. What it did in this slot isn't known: its newest word is of %s.", a.second(v.Presence.Seen))
}
