package runlog

import (
	"cmp"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/flagname"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
)

// text is an event for people, or nothing. It takes note of what happened: every event must pass it. The level is that
// of event.LogToZap.
func (l *Log) text(e event.Event) string {
	text := cmp.Or(l.ofSlot(e), l.ofStore(e), l.ofLedger(e))
	about := slotOf(e)
	switch e := e.(type) {
	case event.Missed:
		return slotsText(e.Slot, e.Until) + ": " + text
	case event.SlotDone:
		if !l.over.IsZero() && l.over.Start.Equal(l.begun.Start) && l.over.Start.Before(about.Start) {
			about = l.over // Its run went on into the slot.
		}
	}
	if text == "" || about.IsZero() {
		return text
	}
	return slotText(about) + ": " + text
}

// expired is how a lease has ended.
func expired(e event.Expired) string {
	if e.Early {
		return "ended: not extended before " + display.Clock(e.Lease.Expiry)
	}
	return fmt.Sprintf("ended: %s", e.Why)
}

// ofSlot is what happened in a slot.
func (l *Log) ofSlot(e event.Event) string {
	switch e := e.(type) {
	case event.Claimed:
		return claimed(e)
	case event.Allocated:
		l.begun = e.Lease.Slot
		return fmt.Sprintf("allocated, token %d, until %s", e.Lease.Token, display.Clock(e.Lease.Expiry))
	case event.Extended:
		l.begun = e.Lease.Slot
		return fmt.Sprintf("extended, token %d, until %s", e.Lease.Token, display.Clock(e.Lease.Expiry))
	case event.TaskFailed:
		return taskFailed(e)
	case event.WorkerDied:
		return workerDied(e)
	case event.Skipped:
		return fmt.Sprintf("skipped: still running since %s for %s", display.Clock(e.Since), slotText(e.Running))
	case event.SlotDone:
		return "done"
	case event.Exhausted:
		return "given up: not done, and not tried again"
	case event.Postponed:
		return fmt.Sprintf("attempt %d has failed, and the next one comes after %s", e.Attempts, display.Clock(e.After))
	case event.Rested:
		return fmt.Sprintf("the command has ended, and is started again at %s if the lease goes on", display.Clock(e.Until))
	case event.Panic:
		return fmt.Sprintf("internal error: %v", e.Err)
	case event.Expired:
		return expired(e)
	case event.Missed:
		return fmt.Sprintf("missed: %s", e.Why)
	case event.Released:
		if !e.Slot.Start.Equal(l.begun.Start) {
			return "released before it began"
		}
		return "released at " + display.Clock(e.At)
	case event.Overrun:
		return "the command still runs although the lease is over; nothing is claimed until it has ended"
	case event.BecameIneligible:
		return fmt.Sprintf("not eligible: %v", e.Err)
	case event.BecameEligible:
		return "eligible again"
	case event.SteppedBack:
		return fmt.Sprintf("failed in %d slots in a row: others go first until %s", e.Failures, store.Format(e.Until))
	}
	return ""
}

func claimed(e event.Claimed) string {
	switch early := e.Early.Round(time.Millisecond); {
	case e.Joined:
		return "joined the group's lease"
	case early < 0:
		return fmt.Sprintf("claimed %v after the boundary", -early)
	default:
		return fmt.Sprintf("claimed %v before the boundary", early)
	}
}

// ofStore is what happened to the store, its clock, or the worker itself.
func (l *Log) ofStore(e event.Event) string {
	switch e := e.(type) {
	case event.Unknown:
		return l.failure(e.Again, fmt.Sprintf("store: append of record %d: outcome unknown: %v", e.Seq, e.Err), e.Err)
	case event.Throttled:
		return l.failure(e.Again, fmt.Sprintf("store: %s: throttled, again after %v", e.Operation, e.RetryAfter), e.Err)
	case event.StoreFailed:
		return l.failure(e.Again, fmt.Sprintf("store: %s failed: %v", e.Operation, e.Err), e.Err)
	case event.StoreRecovered:
		return l.recovered(e)
	case event.ClockSample:
		text := fmt.Sprintf("store time %s ± %v, round trip %v", store.Format(e.StoreTime), e.Uncertainty.Round(time.Microsecond), e.RoundTrip.Round(time.Microsecond))
		if e.Note != "" {
			text += "; " + e.Note
		}
		return text
	case event.ClockJump:
		return fmt.Sprintf("store time by server %s: %s; now %s ± %v", e.Server, e.Verdict, store.Format(e.StoreTime), e.Uncertainty.Round(time.Millisecond))
	case event.TooUncertain:
		return flagname.In(e.Err.Error())
	case event.Lapsed:
		return flagname.In(e.Err.Error())
	case event.StoreWarning:
		return e.Text
	case event.WatchFailed:
		return fmt.Sprintf("the store gives no hints: %v", e.Err)
	case event.Charged:
		return fmt.Sprintf("%s: charged %.2f request units", e.Operation, e.Units)
	case event.Stuck:
		return fmt.Sprintf("did nothing for %v: %s had not returned", e.Took.Round(time.Millisecond), e.In)
	case event.StopFailed:
		return fmt.Sprintf("stopping failed: %v", e.Err)
	}
	return ""
}

// ofLedger is what the worker has read in the ledger, or in the roster.
func (l *Log) ofLedger(e event.Event) string {
	switch e := e.(type) {
	case event.HolderChanged:
		h := e.Holder
		if e.Released {
			return fmt.Sprintf("holder: none: the lease of %q, token %d, has ended as of %s", h.InstanceID, h.Token, display.Clock(h.Until))
		}
		return fmt.Sprintf("holder: %q, priority %d, token %d, from %s until %s", h.InstanceID, h.Priority, h.Token, display.Clock(h.From), display.Clock(h.Until))
	case event.Conflict:
		return fmt.Sprintf("record %d: another worker was faster", e.Seq)
	case event.Vanished:
		return e.Err.Error()
	case event.WentBack:
		return e.Err.Error()
	case event.Trimmed:
		return fmt.Sprintf("trimmed %d old records", e.Count)
	case event.Poison:
		return fmt.Sprintf("record %d can't be obeyed: %v", e.Seq, e.Err)
	case event.Blocked:
		says := "leaves nothing to claim until " + store.Format(e.Until)
		if e.Done {
			says = "says that all slots up to " + store.Format(e.Until) + " are done"
		}
		return fmt.Sprintf("record %d %s; try: %s", e.Seq, says, advice.Command(l.store, fmt.Sprintf("leasectl override --worker-type %s --seq %d", e.WorkerType, e.Seq)))
	case event.PoisonReset:
		return fmt.Sprintf("record %d: reset: %s", e.Seq, e.Reason)
	case event.ScheduleMismatch:
		return e.Text()
	case event.WorkMismatch:
		return e.Text()
	case event.RosterFailed:
		return fmt.Sprintf("the roster can't be kept, on which no lease depends: %v", e.Err)
	case event.Ranked:
		first := ""
		if e.First {
			first = ", first among equals"
		}
		return fmt.Sprintf("claims by priority %d%s: %s", e.Priority, first, e.Why)
	}
	return ""
}

// taskFailed says why an attempt failed, and what follows from that.
func taskFailed(e event.TaskFailed) string {
	if e.Cause.Spared() {
		return "failed: " + string(e.Cause) + "; that counts as no attempt"
	}
	return "failed: " + cmp.Or(string(e.Cause), fmt.Sprint(e.Err)) + givenUp(e.GivenUp)
}

// givenUp says that an attempt was the last.
func givenUp(yes bool) string {
	if yes {
		return "; it was the last attempt"
	}
	return ""
}

func inversion(yes bool) string {
	if yes {
		return ", although our priority is higher: our claim came too late"
	}
	return ""
}

// workerDied is what a successor knows of the worker before it.
func workerDied(e event.WorkerDied) string {
	if e.Attempt == 0 {
		return fmt.Sprintf("%q had the lease, and has gone without a word: it died, or doesn't reach the store", e.Holder)
	}
	return fmt.Sprintf("attempt %d, by %q, has ended without a word: its worker died, or doesn't reach the store%s", e.Attempt, e.Holder, givenUp(e.GivenUp))
}
