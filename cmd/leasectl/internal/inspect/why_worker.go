package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/explain"
	"github.com/slotlease/slotlease/workerlease/history"
)

// why is a verdict in a sentence or two.
func (a answer) why(v explain.Verdict) string {
	text := a.reason(v)
	if t := a.newest(); t != nil && v.Presence.Work != "" && t.Record.Work != "" && t.Record.Work != v.Presence.Work && v.Standing.There() && slices.Contains(a.there, t.Record.InstanceID) {
		text += fmt.Sprintf(" It is there for another command (%s, that of %s is %s): give each a worker type of its own.", v.Presence.Work, holderOf(*t), t.Record.Work)
	}
	if v.InRoster && !v.Certain && v.Reason != explain.Unknown {
		text = "Probably: " + text + fmt.Sprintf(" That is by what it said at %s.", a.second(v.Presence.Seen))
	}
	return text
}

// newest is the term of the slot, or the newest of the type.
func (a answer) newest() *history.Entry {
	e := a.Holder
	if (e == nil || e.Slot != a.Slot) && len(a.Terms) > 0 {
		e = &a.Terms[0]
	}
	return e
}

// winner names the worker to which the others lost, with its priority.
func (a answer) winner() (name string, priority int) {
	e := a.newest()
	if e == nil {
		return "nobody", 0
	}
	return holderOf(*e), e.Record.Priority
}

// plainly are the reasons that need no more words.
var plainly = map[explain.Reason]string{
	explain.Overran:     "The run of an earlier slot had not ended, so that it claimed nothing.",
	explain.Unreachable: "It couldn't reach the store in time.",
	explain.WentBack:    "The store had lost records that it had read, or might have lost some, and another worker might still have worked by them.",
	explain.TooLate:     "Too little was left of the slot for it, or its process was paused.",
}

// reason is why a worker did or didn't get the slot.
func (a answer) reason(v explain.Verdict) string {
	p, is, has, isnt := v.Presence, "is", "has", "isn't"
	if a.When == explain.Past {
		is, has, isnt = "was", "had", "wasn't"
	}
	switch v.Reason {
	case explain.Had:
		return a.had(v)
	case explain.HigherPriority, explain.SamePriority, explain.LateInTurn, explain.Continued, explain.Contends:
		return a.turn(v)
	case explain.Paused, explain.Drained, explain.Preferred:
		return a.byOrder(v, is)
	case explain.NotEligible:
		return fmt.Sprintf("It %s not eligible: %s.", is, strings.TrimSuffix(v.Detail, "."))
	case explain.ClockUnfit:
		return a.clockUnfit(v)
	case explain.Absent:
		return fmt.Sprintf("It %s absent: it was last seen at %s, and %s. It died, or couldn't reach the store.", is, a.second(p.Seen), a.unseen(v))
	case explain.Stopped:
		return fmt.Sprintf("It had stopped at %s.", a.second(p.Seen))
	case explain.NotStarted:
		return a.notStarted(v)
	case explain.StillRunning:
		if v.InstanceID == a.Skipped.Record.InstanceID {
			return "Its job still ran for an earlier slot, so that nobody begins this one."
		}
		return "Nobody begins it, because " + a.running(*a.Skipped)
	case explain.SteppedBack:
		return fmt.Sprintf("It stepped back, so that others went first until %s: its code had failed in %s in a row.", a.second(p.StepsBackUntil), display.Count(p.Failures, "slot"))
	case explain.OtherSchedule:
		return fmt.Sprintf("It %s another schedule, %q, which has no such slot. Give all workers of the type one schedule, and one time zone.", has, v.Detail)
	case explain.Refused:
		return "The store refused its claim: " + v.Detail + "."
	case explain.Poisoned:
		if v.Detail == string(history.Poison) {
			return "The newest record couldn't be obeyed."
		}
		return "The newest record couldn't be obeyed: " + v.Detail + "."
	default:
		return cmp.Or(plainly[v.Reason], a.noIdea(v, isnt))
	}
}

// turn says how the turn of a worker came out, by its priority.
func (a answer) turn(v explain.Verdict) string {
	p := v.Presence
	winner, its := a.winner()
	own := fmt.Sprintf("Its priority is %d", p.Effective)
	if p.Effective != p.Priority {
		own += fmt.Sprintf(" at present, not its own %d", p.Priority)
		if p.Why != "" {
			own += ", because " + strings.TrimSuffix(p.Why, ".")
		}
	}
	switch {
	case v.Reason == explain.HigherPriority:
		return fmt.Sprintf("%s; %s claimed with %d, and the lower number goes first.", own, winner, its)
	case v.Reason == explain.SamePriority && v.Before:
		return fmt.Sprintf("%s, as that of %s, which had the slot before: by default it goes first among equals.", own, winner)
	case v.Reason == explain.SamePriority && v.OwnBefore:
		return fmt.Sprintf("%s, as that of %s. It had the slot before, so that by default its turn came first, and it did not claim in it.", own, winner) + a.goneSince(p)
	case v.Reason == explain.SamePriority:
		return fmt.Sprintf("%s, as that of %s, which came first: among equals chance decides, unless one had the slot before.", own, winner)
	case v.Reason == explain.Continued:
		return fmt.Sprintf("The lease of %s went on from the slot before, so that there was nothing to claim.", winner)
	case v.Reason == explain.Contends:
		return fmt.Sprintf("It contends for it. %s.", own)
	}
	text := fmt.Sprintf("%s, and that of %s %d: its turn came first, and it did not claim in it.", own, winner, its)
	return text + cmp.Or(a.goneSince(p), " Why isn't known: the ledger keeps no claims of those that lose.")
}

// goneSince says that a worker may have died, if it was not seen since the slot began.
func (a answer) goneSince(p store.Presence) string {
	if !p.Seen.Before(a.Slot.Start) {
		return ""
	}
	return fmt.Sprintf(" It was last seen at %s, before the slot began: it may have died since.", a.second(p.Seen))
}

// byOrder says which order of an operator kept a worker from the slot.
func (a answer) byOrder(v explain.Verdict, is string) string {
	switch {
	case v.Reason == explain.Drained && v.Order == nil:
		return "Its host " + is + " drained, as an operator ordered."
	case v.Reason == explain.Drained:
		return "Its host " + strings.TrimPrefix(a.drained(*v.Order), "Host ")
	case v.Order != nil:
		return "The worker type " + a.isBy(*v.Order) + " " + a.order(*v.Order) + "."
	case v.Reason == explain.Preferred:
		return "An operator ordered that: " + v.Detail + "."
	}
	return "The worker type " + is + " paused."
}

// clockUnfit says that a worker didn't know the time.
func (a answer) clockUnfit(v explain.Verdict) string {
	p, text := v.Presence, "Its time was in question: "+v.Detail+"."
	if v.Detail == "" {
		knows := "knows"
		if a.When == explain.Past {
			knows = "knew"
		}
		text = fmt.Sprintf("It %s the store's time too inexactly for this slot: ±%s.", knows, brief(p.Uncertainty))
	}
	if p.Host != "" {
		text += fmt.Sprintf(" By its newest word, the time of day of its host %s is %s.", p.Host, way(p.Offset))
	}
	return text
}

// had says what a worker had of the slot.
func (a answer) had(v explain.Verdict) string {
	have := "had"
	switch {
	case a.When == explain.Future:
		have = "has claimed"
	case a.Holder != nil && v.Term == a.Holder && a.Holder.Holds(a.at):
		have = "has"
	}
	who, what := "It", "slot"
	if v.Group != "" {
		who = "Its group"
	}
	if a.Triggered {
		what = "run"
	}
	text := fmt.Sprintf("%s %s the %s.", who, have, what)
	if !v.InRoster && a.unlisted == nil {
		text += " It isn't in the roster: it keeps none there, or has stopped since."
	}
	// Of a group, another member may hold.
	if p := v.Presence; have == "has" && v.Group == "" && v.Standing == workerlease.Gone {
		text += fmt.Sprintf(" It is absent: it was last seen at %s, and should have been seen again by %s. It died, or can't reach the store."+
			" If it died, leasectl release --force ends its lease, which otherwise lasts until %s.", a.second(p.Seen), a.second(p.Next), a.clock(v.Term.Window.End))
	}
	if p := v.Presence; have == "had" && v.InRoster && v.Group == "" && v.Standing == workerlease.Gone && (v.Term.State == history.Expired || v.Term.Silent()) && p.Seen.Before(v.Term.Window.End) {
		text += fmt.Sprintf(" It was last seen at %s, and %s: it may have died in it, or have lost the store.", a.second(p.Seen), a.unseen(v))
	}
	return text
}

// unseen says what shows that a worker has not been seen since its newest word: its next one may not be due yet.
func (a answer) unseen(v explain.Verdict) string {
	ended := v.Silent
	if v.Term != nil && v.Term.Silent() {
		ended = v.Term.Window.End
	}
	switch p := v.Presence; {
	case !ended.IsZero():
		return "its lease ended without a word at " + a.clock(ended)
	case !p.Next.Before(a.at):
		return "not since"
	default:
		return "should have been seen again by " + a.second(p.Next)
	}
}

// noIdea says that it isn't known why a worker didn't get the slot, and what else is.
func (a answer) noIdea(v explain.Verdict, isnt string) string {
	switch {
	case a.Unread || a.Slot.IsZero():
		return "What it did then isn't known."
	case !v.InRoster && a.unlisted != nil:
		return "It " + isnt + " among those that had this slot. No more is known, since the workers can't be listed."
	case !v.InRoster:
		return "It " + isnt + " among those that had this slot. It isn't in the roster, so that no more is known: it keeps none there, or has stopped since."
	case v.Presence.Missed != "":
		return fmt.Sprintf("It was there. What it did in this slot isn't known; of the newest slot that it didn't get it says: %s.", strings.TrimSuffix(v.Presence.Missed, "."))
	}
	return fmt.Sprintf("It was there. What it did in this slot isn't known: its newest word is of %s.", a.second(v.Presence.Seen))
}

// notStarted is about a worker that came after the slot was decided.
func (a answer) notStarted(v explain.Verdict) string {
	p := v.Presence
	if v.Detail != "" {
		return fmt.Sprintf("It had not started when the slot was decided: it joined at %s, and found that %s.", a.second(p.Since), v.Detail)
	}
	if j := p.Job; j != nil && j.StartWithin > 0 {
		if by := a.Slot.Start.Add(j.StartsWithin(a.Slot.Length())); p.Since.After(by) {
			return fmt.Sprintf("It began at %s, too late for the slot from %s, whose job may begin until %s (--start-within).", a.second(p.Since), a.second(a.Slot.Start), a.second(by))
		}
	}
	if len(a.Terms) == 0 && a.When == explain.Now {
		return fmt.Sprintf("It began at %s, and waits for its first slot, as plain workers and those with --wait-for-boundary do.", a.second(p.Since))
	}
	return fmt.Sprintf("It had not started when the slot was decided: it began at %s. Plain workers, and those with --wait-for-boundary, wait for the next slot then, and others for the end of the lease.", a.second(p.Since))
}
