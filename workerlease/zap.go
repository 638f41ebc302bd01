package workerlease

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/store"
)

// LogTo returns an observer that logs. A panic of user code is an error; what
// needs attention (missed slots, overruns, a failing store, clock jumps, poison,
// mismatches) is a warning; what happens to leases is information; the rest is
// for debugging.
func LogTo(l *zap.Logger) Observer { return zapObserver{l} }

type zapObserver struct{ log *zap.Logger }

// Observe logs an event.
func (o zapObserver) Observe(e Event) {
	level, message, fields := entry(e)
	if check := o.log.Check(level, message); check != nil {
		w := e.Of()
		check.Write(append(fields, zap.String("workerType", w.WorkerType), zap.String("instanceId", w.InstanceID))...)
	}
}

// entry is what is logged of an event.
func entry(e Event) (zapcore.Level, string, []zap.Field) {
	type f = []zap.Field
	switch e := e.(type) {
	case Claimed:
		return zap.DebugLevel, "slot claimed", f{
			zap.Stringer("slot", e.Slot), zap.Int64("seq", e.Seq), zap.Int64("token", e.Token),
			zap.Bool("joined", e.Joined), zap.Duration("early", e.Early),
		}
	case Lost:
		return zap.DebugLevel, "slot lost", f{
			zap.Stringer("slot", e.Slot), zap.String("holder", e.Holder.InstanceID),
			zap.Int("holderPriority", e.Holder.Priority), zap.Bool("inversion", e.Inversion),
		}
	case Allocated:
		return zap.InfoLevel, "lease allocated", f{
			zap.Stringer("slot", e.Lease.Slot), zap.Int64("token", e.Lease.Token), zap.Duration("late", e.Late),
		}
	case TaskFailed:
		return zap.ErrorLevel, "task failed", f{zap.Stringer("slot", e.Lease.Slot), zap.Int64("token", e.Lease.Token), zap.Error(e.Err)}
	case SlotDone:
		return zap.InfoLevel, "slot done", f{zap.Stringer("slot", e.Slot), zap.Int64("seq", e.Seq)}
	case Exhausted:
		return zap.ErrorLevel, "slot not done", f{zap.Stringer("slot", e.Slot), zap.Int("attempts", e.Attempts)}
	case HolderChanged:
		return zap.DebugLevel, "holder changed", f{
			zap.String("holder", e.Holder.InstanceID), zap.Int64("token", e.Holder.Token),
			zap.String("from", store.Format(e.Holder.From)), zap.String("until", store.Format(e.Holder.Until)),
			zap.Bool("released", e.Released),
		}
	case Extended:
		return zap.DebugLevel, "lease extended", f{
			zap.Stringer("slot", e.Lease.Slot), zap.Int64("token", e.Lease.Token), zap.Int64("seq", e.Seq),
			zap.String("expiry", store.Format(e.Lease.Expiry)),
		}
	case Expired:
		return zap.InfoLevel, "lease expired", f{
			zap.Stringer("slot", e.Lease.Slot), zap.Int64("token", e.Lease.Token), zap.String("why", string(e.Why)),
		}
	case Missed:
		return zap.WarnLevel, "slot missed", f{
			zap.Stringer("slot", e.Slot), zap.String("until", store.Format(e.Until)), zap.String("why", string(e.Why)),
		}
	case Released:
		return zap.InfoLevel, "lease released", f{
			zap.Stringer("slot", e.Slot), zap.Int64("seq", e.Seq), zap.String("at", store.Format(e.At)),
		}
	case Overrun:
		return zap.WarnLevel, "callback overruns its lease", f{zap.Stringer("slot", e.Slot)}
	case Panic:
		return zap.ErrorLevel, "callback panicked", f{zap.Stringer("slot", e.Slot), zap.Error(e.Err)}
	case Conflict:
		return zap.DebugLevel, "append conflict", f{zap.Int64("seq", e.Seq)}
	case Unknown:
		return zap.WarnLevel, "append outcome unknown", f{zap.Int64("seq", e.Seq), zap.Error(e.Err)}
	case Throttled:
		return zap.WarnLevel, "store throttles", f{
			zap.String("operation", e.Operation), zap.Duration("retryAfter", e.RetryAfter), zap.Error(e.Err),
		}
	case StoreFailed:
		return zap.WarnLevel, "store failed", f{zap.String("operation", e.Operation), zap.Error(e.Err)}
	case ClockSample:
		return zap.DebugLevel, "clock sample", f{
			zap.String("server", e.Server), zap.Duration("roundTrip", e.RoundTrip), zap.Duration("uncertainty", e.Uncertainty),
		}
	case ClockJump:
		return zap.WarnLevel, "clock jump", f{
			zap.String("server", e.Server), zap.Bool("contradiction", e.Contradiction),
			zap.String("storeTime", store.Format(e.StoreTime)), zap.Duration("uncertainty", e.Uncertainty),
		}
	case TooUncertain:
		return zap.ErrorLevel, "time too uncertain", f{zap.Duration("uncertainty", e.Uncertainty), zap.Error(e.Err)}
	case Charged:
		return zap.DebugLevel, "operation charged", f{zap.String("operation", e.Operation), zap.Float64("units", e.Units)}
	case Trimmed:
		return zap.DebugLevel, "ledger trimmed", f{zap.Int("count", e.Count)}
	case Poison:
		return zap.WarnLevel, "ledger poisoned", f{zap.Int64("seq", e.Seq), zap.Error(e.Err)}
	case PoisonReset:
		return zap.WarnLevel, "ledger reset", f{zap.Int64("seq", e.Seq), zap.String("reason", e.Reason)}
	case Vanished:
		return zap.ErrorLevel, "record vanished", f{zap.Int64("seq", e.Seq), zap.Error(e.Err)}
	case ScheduleMismatch:
		return zap.WarnLevel, "schedule mismatch", f{
			zap.String("ours", e.Ours), zap.String("theirs", e.Theirs), zap.String("holder", e.Holder),
		}
	}
	return zap.DebugLevel, "event", nil
}
