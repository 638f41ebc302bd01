package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// journal logs what happens to a worker and its command, for people or as JSON.
type journal struct {
	log    *zap.Logger
	events bool // are logged with their fields: JSON
	state  *journalState
}

func (a *app) newJournal(format string, level zapcore.Level) journal {
	to := zapcore.Lock(zapcore.AddSync(secret.Writer{To: a.stderr, Secrets: a.secrets}))
	j := journal{state: &journalState{now: time.Now}}
	if format == "json" {
		c := zap.NewProductionEncoderConfig()
		c.TimeKey, c.MessageKey, c.EncodeDuration = "time", "message", zapcore.StringDurationEncoder
		c.EncodeTime = func(t time.Time, e zapcore.PrimitiveArrayEncoder) { e.AppendString(store.Format(t)) }
		j.log = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(c), to, level))
		j.events = true
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

// began tells what is beginning.
func (j journal) began(o workerlease.Options) {
	group := ""
	if o.Group != "" {
		group = fmt.Sprintf(", group %q", o.Group)
	}
	extended := ""
	if o.FailoverWithin > 0 {
		extended = fmt.Sprintf(", failover within %v", o.FailoverWithin)
	}
	if o.Continuous {
		extended += ", continuous"
	}
	if o.NoFailback {
		extended += ", no failback"
	}
	once := ""
	if o.Job != nil {
		once = ", once per slot"
		if o.Job.MaxAttempts > 0 {
			once += fmt.Sprintf(", max attempts %d", o.Job.MaxAttempts)
		}
		if o.Job.RunMissed {
			once += ", run missed"
		}
	}
	j.say(zap.InfoLevel, fmt.Sprintf("worker %q of worker type %q, priority %d%s, %s%s%s", o.InstanceID, o.WorkerType, o.Priority, group, o.Schedule, once, extended),
		zap.String("workerType", o.WorkerType), zap.String("instanceId", o.InstanceID), zap.Stringer("schedule", o.Schedule))
}

// stopping tells why, and that a command is stopped: before the end of its lease
// is told, lest it read as if the command outlived it.
func (j journal) stopping(why error) {
	j.state.mu.Lock()
	j.state.stopping = true
	running := j.state.running
	j.state.mu.Unlock()
	j.say(zap.InfoLevel, fmt.Sprintf("stopping: %v", cmp.Or(why, interrupt.Err)))
	if !running.IsZero() {
		j.say(zap.InfoLevel, slotText(running)+": stopping the command", slotFields(running)...)
	}
}

// reached reports whether the store answered when it was asked last.
func (j journal) reached() bool {
	j.state.mu.Lock()
	defer j.state.mu.Unlock()
	return j.state.ready && !j.state.failing
}

func (j journal) stopped() { j.say(zap.InfoLevel, "stopped") }

// command logs something about the command of a lease.
func (j journal) command(level zapcore.Level, l workerlease.Lease, what string, fields ...zap.Field) {
	j.say(level, slotText(l.Slot)+": "+what, append(append(slotFields(l.Slot), zap.Int64("token", l.Token)), fields...)...)
}

// slotFields are a slot in JSON, as inspect shows it.
func slotFields(s slots.Slot) []zap.Field {
	return []zap.Field{zap.String("slotStart", store.Format(s.Start)), zap.String("slotEnd", store.Format(s.End))}
}

// begin and end note that a command runs, and that none does any more.
func (j journal) begin(l workerlease.Lease) {
	j.state.mu.Lock()
	defer j.state.mu.Unlock()
	j.state.running = l.Slot
}

func (j journal) end(l workerlease.Lease) {
	j.state.mu.Lock()
	defer j.state.mu.Unlock()
	j.state.running, j.state.over = slots.Slot{}, l.Slot
	if j.state.begun.Start.After(l.Slot.Start) {
		j.state.over = j.state.begun // Its lease went on.
	}
}

func (j journal) started(l workerlease.Lease, pid int) {
	j.begin(l)
	j.command(zap.InfoLevel, l, fmt.Sprintf("command started, pid %d", pid), zap.Int("pid", pid))
}

func (j journal) notStarted(l workerlease.Lease, err error) {
	j.end(l)
	j.command(zap.ErrorLevel, l, fmt.Sprintf("command not started: %v", err))
}

func (j journal) ended(l workerlease.Lease, s guard.Status, err error) {
	j.end(l)
	level, trouble := zap.InfoLevel, ""
	if s.Reason == guard.Exited && s.ExitCode() != 0 {
		level = zap.WarnLevel
	}
	if err != nil {
		level, trouble = zap.ErrorLevel, ": "+err.Error()
	}
	j.command(level, l, fmt.Sprintf("command: %v%s", s, trouble), zap.Int("exitCode", s.ExitCode()), zap.Stringer("reason", s.Reason))
}

// extendedLate tells why a command ends although the lease goes on.
func (j journal) extendedLate(l workerlease.Lease) {
	j.command(zap.WarnLevel, l, "extended late: the command was told to end already, and is started again")
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
	level, text := j.state.line(e)
	if o, ok := e.(workerlease.Overrun); ok && o.Slot.Start.Equal(j.state.over.Start) {
		return // the command is gone: its end and this crossed
	}
	if f, ok := e.(workerlease.StoreFailed); ok && j.state.stopping && errors.Is(f.Err, context.Canceled) {
		return // broken off by us
	}
	switch {
	case j.events:
		workerlease.LogTo(j.log.With(eventFields(e)...)).Observe(e)
	case text != "":
		j.say(level, text)
	}
}

// eventFields are the slot of an event.
func eventFields(e workerlease.Event) []zap.Field {
	switch e := e.(type) {
	case workerlease.Claimed:
		return slotFields(e.Slot)
	case workerlease.Lost:
		return slotFields(e.Slot)
	case workerlease.Allocated:
		return slotFields(e.Lease.Slot)
	case workerlease.Extended:
		return slotFields(e.Lease.Slot)
	case workerlease.Expired:
		return slotFields(e.Lease.Slot)
	case workerlease.Missed:
		return slotFields(e.Slot)
	case workerlease.Released:
		return slotFields(e.Slot)
	case workerlease.Overrun:
		return slotFields(e.Slot)
	case workerlease.Panic:
		return slotFields(e.Slot)
	case workerlease.SlotDone:
		return slotFields(e.Slot)
	case workerlease.Exhausted:
		return slotFields(e.Slot)
	case workerlease.TaskFailed:
		fields := slotFields(e.Lease.Slot)
		if command, ok := errors.AsType[failedError](e.Err); ok {
			fields = append(fields, zap.Int("exitCode", command.ExitCode()))
		}
		return fields
	}
	return nil
}
