package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// journal logs what happens to a worker and its command, for people or as JSON.
type journal struct {
	log    *zap.Logger
	events workerlease.Observer // for JSON; nil for text
	state  *journalState
}

// journalState is what the text form remembers in order not to repeat itself.
type journalState struct {
	mu      sync.Mutex
	ready   bool
	failing bool
}

func (a *app) newJournal(format string, level zapcore.Level) journal {
	to := zapcore.Lock(zapcore.AddSync(scrubber{to: a.stderr, secrets: a.secrets}))
	j := journal{state: &journalState{}}
	if format == "json" {
		c := zap.NewProductionEncoderConfig()
		c.TimeKey, c.MessageKey, c.EncodeDuration = "time", "message", zapcore.StringDurationEncoder
		c.EncodeTime = func(t time.Time, e zapcore.PrimitiveArrayEncoder) { e.AppendString(store.Format(t)) }
		j.log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(c), to, level))
		j.events = workerlease.LogTo(j.log)
		return j
	}
	j.log = zap.New(&textCore{LevelEnabler: level, to: to})
	return j
}

// say logs a line. The fields show in JSON only: the text has it all.
func (j journal) say(level zapcore.Level, text string, fields ...zap.Field) {
	if c := j.log.Check(level, text); c != nil {
		c.Write(fields...)
	}
}

func (j journal) began(s workerlease.Status, o workerlease.Options) {
	group := ""
	if o.Group != "" {
		group = fmt.Sprintf(", group %q", o.Group)
	}
	j.say(zap.InfoLevel, fmt.Sprintf("worker %q of worker type %q, priority %d%s, %s", s.InstanceID, s.WorkerType, o.Priority, group, o.Schedule),
		zap.String("workerType", s.WorkerType), zap.String("instanceId", s.InstanceID), zap.Stringer("schedule", o.Schedule))
}

func (j journal) stopping(why error) {
	j.say(zap.InfoLevel, fmt.Sprintf("stopping: %v", cmp.Or(why, errInterrupted)))
}

func (j journal) stopped() { j.say(zap.InfoLevel, "stopped") }

// command logs something about the command of a lease.
func (j journal) command(level zapcore.Level, l workerlease.Lease, what string, fields ...zap.Field) {
	j.say(level, slotText(l.Slot)+": "+what, append(fields, zap.Stringer("slot", l.Slot), zap.Int64("token", l.Token))...)
}

func (j journal) started(l workerlease.Lease, pid int) {
	j.command(zap.InfoLevel, l, fmt.Sprintf("command started, pid %d", pid), zap.Int("pid", pid))
}

func (j journal) notStarted(l workerlease.Lease, err error) {
	j.command(zap.ErrorLevel, l, fmt.Sprintf("command not started: %v", err))
}

func (j journal) ended(l workerlease.Lease, s guard.Status, err error) {
	level, trouble := zap.InfoLevel, ""
	if s.Reason == guard.Exited && s.ExitCode() != 0 {
		level = zap.WarnLevel
	}
	if err != nil {
		level, trouble = zap.ErrorLevel, ": "+err.Error()
	}
	j.command(level, l, fmt.Sprintf("command: %v%s", s, trouble), zap.Int("exitCode", s.ExitCode()), zap.Stringer("reason", s.Reason))
}

func (j journal) trouble(what string, err error) {
	j.say(zap.WarnLevel, fmt.Sprintf("%s: %v", what, err))
}

// Observe logs what happens to the worker.
func (j journal) Observe(e workerlease.Event) {
	j.state.mu.Lock()
	defer j.state.mu.Unlock()
	if s, ok := e.(workerlease.ClockSample); ok && !j.state.ready {
		j.state.ready = true
		j.say(zap.InfoLevel, fmt.Sprintf("ready: store time %s ± %v", store.Format(s.StoreTime), s.Uncertainty.Round(time.Microsecond)))
	}
	if j.events != nil {
		j.events.Observe(e)
		return
	}
	if level, text := j.state.line(e); text != "" {
		j.say(level, text)
	}
}

// line is an event for people, or nothing.
func (s *journalState) line(e workerlease.Event) (zapcore.Level, string) {
	// An outage is told when it begins and when it ends: not at every retry.
	trouble := zap.WarnLevel
	switch e.(type) {
	case workerlease.StoreFailed, workerlease.Unknown, workerlease.Throttled:
		if s.failing {
			trouble = zap.DebugLevel
		}
		s.failing = true
	case workerlease.ClockSample, workerlease.Claimed, workerlease.Lost:
		if s.failing {
			s.failing = false
			return zap.InfoLevel, "store: reached again"
		}
	}
	switch e := e.(type) {
	case workerlease.Claimed:
		if e.Joined {
			return zap.DebugLevel, slotText(e.Slot) + ": joined the group's lease"
		}
		return zap.DebugLevel, fmt.Sprintf("%s: claimed %v before the boundary", slotText(e.Slot), e.Early.Round(time.Millisecond))
	case workerlease.Lost:
		return zap.DebugLevel, fmt.Sprintf("%s: held by %q, priority %d%s", slotText(e.Slot), e.Holder.InstanceID, e.Holder.Priority, inversion(e.Inversion))
	case workerlease.Allocated:
		return zap.InfoLevel, fmt.Sprintf("%s: allocated, token %d, until %s", slotText(e.Lease.Slot), e.Lease.Token, clockOf(e.Lease.Expiry))
	case workerlease.Expired:
		return zap.InfoLevel, fmt.Sprintf("%s: expired: %s", slotText(e.Lease.Slot), e.Why)
	case workerlease.Missed:
		return zap.WarnLevel, fmt.Sprintf("%s: missed: %s%s", slotText(e.Slot), e.Why, until(e))
	case workerlease.Released:
		return zap.InfoLevel, fmt.Sprintf("%s: released at %s", slotText(e.Slot), clockOf(e.At))
	case workerlease.Overrun:
		return zap.WarnLevel, slotText(e.Slot) + ": the command is not gone although the lease is over; nothing more is claimed until it is"
	case workerlease.Conflict:
		return zap.DebugLevel, fmt.Sprintf("record %d: another was faster", e.Seq)
	case workerlease.Unknown:
		return trouble, fmt.Sprintf("store: append of record %d: outcome unknown: %v", e.Seq, e.Err)
	case workerlease.Throttled:
		return trouble, fmt.Sprintf("store: %s: throttled, again after %v", e.Operation, e.RetryAfter)
	case workerlease.StoreFailed:
		return trouble, fmt.Sprintf("store: %s failed: %v", e.Operation, e.Err)
	case workerlease.ClockSample:
		return zap.DebugLevel, fmt.Sprintf("store time %s ± %v, round trip %v", store.Format(e.StoreTime), e.Uncertainty.Round(time.Microsecond), e.RoundTrip.Round(time.Microsecond))
	case workerlease.ClockJump:
		return zap.WarnLevel, fmt.Sprintf("store time jumped, or another server (%s) told it: now %s ± %v", e.Server, store.Format(e.StoreTime), e.Uncertainty.Round(time.Millisecond))
	case workerlease.Trimmed:
		return zap.DebugLevel, fmt.Sprintf("trimmed %d old records", e.Count)
	case workerlease.Poison:
		return zap.WarnLevel, fmt.Sprintf("record %d can't be obeyed: %v", e.Seq, e.Err)
	case workerlease.PoisonReset:
		return zap.WarnLevel, fmt.Sprintf("record %d: reset: %s", e.Seq, e.Reason)
	case workerlease.ScheduleMismatch:
		return zap.WarnLevel, fmt.Sprintf("schedules differ: here %q, %q has %q", e.Ours, e.Holder, e.Theirs)
	}
	return zap.DebugLevel, ""
}

func inversion(yes bool) string {
	if yes {
		return ", although ours is higher: our claim came too late"
	}
	return ""
}

// until tells how far a run of missed slots goes.
func until(e workerlease.Missed) string {
	if e.Until.After(e.Slot.End) {
		return ", and all up to " + store.Format(e.Until)
	}
	return ""
}

// clockOf is a store time without its date, slotText a slot by its start.
func clockOf(t time.Time) string      { return t.UTC().Format("15:04:05.000Z") }
func slotText(slot slots.Slot) string { return "slot " + clockOf(slot.Start) }

// textCore is a zap core that writes lines for people: time, level, message.
type textCore struct {
	zapcore.LevelEnabler
	to io.Writer
}

func (c *textCore) With([]zapcore.Field) zapcore.Core { return c }
func (c *textCore) Sync() error                       { return nil }

func (c *textCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *textCore) Write(e zapcore.Entry, _ []zapcore.Field) error {
	_, err := fmt.Fprintf(c.to, "%s %-5s %s\n", store.Format(e.Time), e.Level.CapitalString(), strings.Join(strings.Fields(printable(e.Message)), " "))
	return err
}
