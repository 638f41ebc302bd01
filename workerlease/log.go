package workerlease

import (
	"log/slog"

	"github.com/slotlease/slotlease/store"
)

// line is how an event is logged, whatever the logger.
type line struct {
	level   slog.Level
	message string
	attrs   []attr
}

// attr is a key and a value: a string, a number, a bool, a time.Duration, an error or a
// fmt.Stringer.
type attr struct {
	key   string
	value any
}

type attrs = []attr

// levelOf is the level at which an event is logged.
func levelOf(e Event) slog.Level { return lineOf(e).level }

// lineOf is the table of all events. A failure of user code, and lost work, is an error.
// A condition that needs attention is a warning. The course of leases is information, and
// the rest is for debugging.
func lineOf(e Event) line {
	switch e := e.(type) {
	case Started:
		return line{slog.LevelDebug, "worker started", nil}
	case Claimed:
		return line{slog.LevelDebug, "slot claimed", attrs{
			{"slot", e.Slot},
			{"seq", e.Seq},
			{"token", e.Token},
			{"joined", e.Joined},
			{"early", e.Early},
		}}
	case Lost:
		return line{slog.LevelDebug, "slot lost", attrs{
			{"slot", e.Slot},
			{"holder", e.Holder.InstanceID},
			{"holderPriority", e.Holder.Priority},
			{"inversion", e.Inversion},
		}}
	case Allocated:
		return line{slog.LevelInfo, "lease allocated", attrs{
			{"slot", e.Lease.Slot}, {"token", e.Lease.Token}, {"late", e.Late},
		}}
	case TaskSucceeded:
		return line{slog.LevelDebug, "task succeeded", attrs{{"slot", e.Lease.Slot}, {"token", e.Lease.Token}, {"took", e.Took}}}
	case Faltered:
		level, details := slog.LevelDebug, attrs{{"slot", e.Lease.Slot}, {"token", e.Lease.Token}}
		if e.Err != nil {
			level, details = slog.LevelWarn, append(details, attr{"error", e.Err})
		}
		return line{level, "work failed", details}
	case TaskFailed:
		return line{slog.LevelError, "task failed", attrs{{"slot", e.Lease.Slot}, {"token", e.Lease.Token}, {"error", e.Err}}}
	case SlotDone:
		return line{slog.LevelInfo, "slot done", attrs{{"slot", e.Slot}, {"seq", e.Seq}}}
	case Exhausted:
		return line{slog.LevelError, "slot not done", attrs{{"slot", e.Slot}, {"attempts", e.Attempts}}}
	case Postponed:
		return line{slog.LevelInfo, "next attempt postponed", attrs{
			{"slot", e.Slot}, {"attempts", e.Attempts}, {"after", store.Format(e.After)},
		}}
	case Rested:
		return line{slog.LevelInfo, "task rests", attrs{
			{"slot", e.Lease.Slot}, {"token", e.Lease.Token}, {"until", store.Format(e.Until)},
		}}
	case HolderChanged:
		return line{slog.LevelDebug, "holder changed", attrs{
			{"holder", e.Holder.InstanceID},
			{"token", e.Holder.Token},
			{"from", store.Format(e.Holder.From)},
			{"until", store.Format(e.Holder.Until)},
			{"released", e.Released},
		}}
	case Extended:
		return line{slog.LevelDebug, "lease extended", attrs{
			{"slot", e.Lease.Slot},
			{"token", e.Lease.Token},
			{"seq", e.Seq},
			{"expiry", store.Format(e.Lease.Expiry)},
		}}
	case Expired:
		return line{slog.LevelInfo, "lease expired", attrs{
			{"slot", e.Lease.Slot}, {"token", e.Lease.Token}, {"why", string(e.Why)},
		}}
	case Returned:
		return line{slog.LevelDebug, "code returned", attrs{{"slot", e.Lease.Slot}, {"token", e.Lease.Token}}}
	case Missed:
		return line{slog.LevelWarn, "slot missed", attrs{
			{"slot", e.Slot}, {"until", store.Format(e.Until)}, {"count", e.Count}, {"why", string(e.Why)},
		}}
	case Released:
		return line{slog.LevelInfo, "lease released", attrs{
			{"slot", e.Slot}, {"seq", e.Seq}, {"at", store.Format(e.At)},
		}}
	case Overrun:
		return line{slog.LevelWarn, "callback overruns its lease", attrs{{"slot", e.Slot}}}
	case Panic:
		return line{slog.LevelError, "callback panicked", attrs{{"slot", e.Slot}, {"error", e.Err}}}
	case StopFailed:
		return line{slog.LevelWarn, "stopping failed", attrs{{"error", e.Err}}}
	case Conflict:
		return line{slog.LevelDebug, "append conflict", attrs{{"seq", e.Seq}}}
	case Unknown:
		return line{slog.LevelWarn, "append outcome unknown", attrs{{"seq", e.Seq}, {"error", e.Err}}}
	case Throttled:
		return line{slog.LevelWarn, "store throttles", attrs{
			{"operation", e.Operation}, {"retryAfter", e.RetryAfter}, {"error", e.Err},
		}}
	case Operated:
		a := attrs{{"operation", e.Operation}, {"took", e.Took}}
		if e.Err != nil {
			a = append(a, attr{"error", e.Err})
		}
		return line{slog.LevelDebug, "operation ended", a}
	case StoreFailed:
		return line{slog.LevelWarn, "store failed", attrs{{"operation", e.Operation}, {"error", e.Err}}}
	case ClockSample:
		a := attrs{{"server", e.Server}, {"roundTrip", e.RoundTrip}, {"uncertainty", e.Uncertainty}}
		if e.Note != "" {
			a = append(a, attr{"note", e.Note})
		}
		return line{slog.LevelDebug, "clock sample", a}
	case ClockJump:
		return line{slog.LevelWarn, "clock jump", attrs{
			{"server", e.Server},
			{"verdict", string(e.Verdict)},
			{"storeTime", store.Format(e.StoreTime)},
			{"uncertainty", e.Uncertainty},
		}}
	case TooUncertain:
		return line{slog.LevelError, "time too uncertain", attrs{{"uncertainty", e.Uncertainty}, {"error", e.Err}}}
	case Lapsed:
		return line{slog.LevelWarn, "lease lapsed in an outage", attrs{{"outage", e.Outage}, {"error", e.Err}}}
	case StoreWarning:
		return line{slog.LevelWarn, "store warning", attrs{{"warning", e.Text}}}
	case WatchFailed:
		return line{slog.LevelDebug, "watch failed", attrs{{"error", e.Err}}}
	case Charged:
		return line{slog.LevelDebug, "operation charged", attrs{{"operation", e.Operation}, {"units", e.Units}}}
	case Trimmed:
		return line{slog.LevelDebug, "ledger trimmed", attrs{{"count", e.Count}}}
	case BecameIneligible:
		return line{slog.LevelWarn, "not eligible", attrs{{"slot", e.Slot}, {"error", e.Err}}}
	case BecameEligible:
		return line{slog.LevelInfo, "eligible again", attrs{{"slot", e.Slot}}}
	case SteppedBack:
		return line{slog.LevelWarn, "stepped back", attrs{{"slot", e.Slot}, {"failures", e.Failures}, {"until", e.Until}}}
	case Ranked:
		return line{slog.LevelDebug, "ranked", attrs{{"priority", e.Priority}, {"first", e.First}, {"why", e.Why}}}
	case RosterFailed:
		return line{slog.LevelWarn, "roster failed", attrs{{"error", e.Err}}}
	case Poison:
		return line{slog.LevelWarn, "ledger poisoned", attrs{{"seq", e.Seq}, {"error", e.Err}}}
	case Blocked:
		return line{slog.LevelWarn, "ledger blocked", attrs{{"seq", e.Seq}, {"until", store.Format(e.Until)}, {"done", e.Done}}}
	case PoisonReset:
		return line{slog.LevelWarn, "ledger reset", attrs{{"seq", e.Seq}, {"reason", e.Reason}}}
	case Vanished:
		return line{slog.LevelError, "record vanished", attrs{{"seq", e.Seq}, {"error", e.Err}}}
	case ScheduleMismatch:
		return line{slog.LevelWarn, "schedule mismatch", attrs{
			{"ours", e.Ours}, {"theirs", e.Theirs}, {"holder", e.Holder},
		}}
	}
	return line{slog.LevelDebug, "event", nil}
}
