package runlog

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/flagname"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// line is an event as text, or nothing. It takes note of what happened: every event
// must pass it.
func (l *Log) line(e workerlease.Event) (zapcore.Level, string) {
	switch e := e.(type) {
	case workerlease.Unknown:
		return l.outage.failure(l.now(), l.stopping, advice.Lasting(e.Err), fmt.Sprintf("store: append of record %d: outcome unknown: %v", e.Seq, e.Err), e.Err)
	case workerlease.Throttled:
		return l.outage.failure(l.now(), l.stopping, false, fmt.Sprintf("store: %s: throttled, again after %v", e.Operation, e.RetryAfter), e.Err)
	case workerlease.StoreFailed:
		return l.outage.failure(l.now(), l.stopping, e.Operation != "now" && advice.Lasting(e.Err), fmt.Sprintf("store: %s failed: %v", e.Operation, e.Err), e.Err)
	case workerlease.ClockSample, workerlease.Claimed, workerlease.Lost, workerlease.HolderChanged:
		if _, time := e.(workerlease.ClockSample); l.outage.over(time) {
			return zap.InfoLevel, "store: reached again"
		}
	case workerlease.Extended, workerlease.Released, workerlease.SlotDone:
		l.outage.over(false) // Their own lines say so.
	}
	switch e := e.(type) {
	case workerlease.Claimed:
		if e.Joined {
			return zap.DebugLevel, slotText(e.Slot) + ": joined the group's lease"
		}
		early := e.Early.Round(time.Millisecond)
		if early < 0 {
			return zap.DebugLevel, fmt.Sprintf("%s: claimed %v after the boundary", slotText(e.Slot), -early)
		}
		return zap.DebugLevel, fmt.Sprintf("%s: claimed %v before the boundary", slotText(e.Slot), early)
	case workerlease.Allocated:
		l.begun = e.Lease.Slot
		return zap.InfoLevel, fmt.Sprintf("%s: allocated, token %d, until %s", slotText(e.Lease.Slot), e.Lease.Token, display.Clock(e.Lease.Expiry))
	case workerlease.TaskFailed:
		return zap.ErrorLevel, fmt.Sprintf("%s: failed: %v", slotText(e.Lease.Slot), e.Err)
	case workerlease.SlotDone:
		return zap.InfoLevel, slotText(e.Slot) + ": done"
	case workerlease.Exhausted:
		return zap.ErrorLevel, fmt.Sprintf("%s: not done after %d attempts, and not tried again", slotText(e.Slot), e.Attempts)
	case workerlease.Postponed:
		return zap.InfoLevel, fmt.Sprintf("%s: attempt %d has failed, and the next one comes after %s", slotText(e.Slot), e.Attempts, display.Clock(e.After))
	case workerlease.Rested:
		return zap.InfoLevel, fmt.Sprintf("%s: the command has ended, and is started again at %s if the lease goes on", slotText(e.Lease.Slot), display.Clock(e.Until))
	case workerlease.Panic:
		return zap.ErrorLevel, fmt.Sprintf("%s: internal error: %v", slotText(e.Slot), e.Err)
	case workerlease.Extended:
		return l.extension(e.Lease)
	case workerlease.HolderChanged:
		h := e.Holder
		if e.Released {
			return zap.DebugLevel, fmt.Sprintf("holder: none: the lease of %q, token %d, has ended as of %s", h.InstanceID, h.Token, display.Clock(h.Until))
		}
		return zap.DebugLevel, fmt.Sprintf("holder: %q, priority %d, token %d, from %s until %s", h.InstanceID, h.Priority, h.Token, display.Clock(h.From), display.Clock(h.Until))
	case workerlease.Expired:
		return zap.InfoLevel, fmt.Sprintf("%s: expired: %s", slotText(e.Lease.Slot), e.Why)
	case workerlease.Missed:
		return zap.WarnLevel, fmt.Sprintf("%s: missed: %s", slotsText(e.Slot, e.Until), e.Why)
	case workerlease.Released:
		if !e.Slot.Start.Equal(l.begun.Start) {
			return zap.InfoLevel, slotText(e.Slot) + ": released before it began"
		}
		return zap.InfoLevel, fmt.Sprintf("%s: released at %s", slotText(e.Slot), display.Clock(e.At))
	case workerlease.Overrun:
		return zap.WarnLevel, slotText(e.Slot) + ": the command still runs although the lease is over; nothing is claimed until it has ended"
	case workerlease.StopFailed:
		return zap.WarnLevel, fmt.Sprintf("stopping failed: %v", e.Err)
	case workerlease.Conflict:
		return zap.DebugLevel, fmt.Sprintf("record %d: another worker was faster", e.Seq)
	case workerlease.ClockSample:
		text := fmt.Sprintf("store time %s ± %v, round trip %v", store.Format(e.StoreTime), e.Uncertainty.Round(time.Microsecond), e.RoundTrip.Round(time.Microsecond))
		if e.Note != "" {
			text += "; " + e.Note
		}
		return zap.DebugLevel, text
	case workerlease.ClockJump:
		return zap.WarnLevel, fmt.Sprintf("store time by server %s: %s; now %s ± %v", e.Server, e.Verdict, store.Format(e.StoreTime), e.Uncertainty.Round(time.Millisecond))
	case workerlease.TooUncertain:
		return zap.ErrorLevel, flagname.In(e.Err.Error())
	case workerlease.Lapsed:
		return zap.WarnLevel, flagname.In(e.Err.Error())
	case workerlease.StoreWarning:
		return zap.WarnLevel, e.Text
	case workerlease.WatchFailed:
		return zap.DebugLevel, fmt.Sprintf("the store gives no hints: %v", e.Err)
	case workerlease.Vanished:
		return zap.ErrorLevel, e.Err.Error()
	case workerlease.Charged:
		return zap.DebugLevel, fmt.Sprintf("%s: charged %.2f request units", e.Operation, e.Units)
	case workerlease.Trimmed:
		return zap.DebugLevel, fmt.Sprintf("trimmed %d old records", e.Count)
	case workerlease.BecameIneligible:
		return zap.WarnLevel, fmt.Sprintf("not eligible: %v", e.Err)
	case workerlease.SteppedBack:
		return zap.WarnLevel, fmt.Sprintf("failed in %d slots in a row: others go first until %s", e.Failures, store.Format(e.Until))
	case workerlease.RosterFailed:
		return zap.WarnLevel, fmt.Sprintf("the roster can't be kept, on which no lease depends: %v", e.Err)
	case workerlease.Ranked:
		first := ""
		if e.First {
			first = ", first among equals"
		}
		return zap.DebugLevel, fmt.Sprintf("claims by priority %d%s: %s", e.Priority, first, e.Why)
	case workerlease.BecameEligible:
		return zap.InfoLevel, "eligible again"
	case workerlease.Poison:
		return zap.WarnLevel, fmt.Sprintf("record %d can't be obeyed: %v", e.Seq, e.Err)
	case workerlease.Blocked:
		try := "try: " + advice.Command(l.store, fmt.Sprintf("leasectl override --worker-type %s --seq %d", e.WorkerType, e.Seq))
		if e.Done {
			return zap.WarnLevel, fmt.Sprintf("record %d says that all slots up to %s are done; %s", e.Seq, store.Format(e.Until), try)
		}
		return zap.WarnLevel, fmt.Sprintf("record %d leaves nothing to claim until %s; %s", e.Seq, store.Format(e.Until), try)
	case workerlease.PoisonReset:
		return zap.WarnLevel, fmt.Sprintf("record %d: reset: %s", e.Seq, e.Reason)
	case workerlease.ScheduleMismatch:
		return zap.WarnLevel, fmt.Sprintf("schedules differ: ours is %q, that of %q is %q; give all workers of the type the same", e.Ours, e.Holder, e.Theirs)
	}
	return zap.DebugLevel, ""
}

// extension is the line about a lease that goes on: into another slot, or within one.
func (l *Log) extension(of workerlease.Lease) (zapcore.Level, string) {
	level := zap.DebugLevel
	if !of.Slot.Start.Equal(l.begun.Start) {
		level, l.begun = zap.InfoLevel, of.Slot
	}
	return level, fmt.Sprintf("%s: extended, token %d, until %s", slotText(of.Slot), of.Token, display.Clock(of.Expiry))
}

func inversion(yes bool) string {
	if yes {
		return ", although our priority is higher: our claim came too late"
	}
	return ""
}
