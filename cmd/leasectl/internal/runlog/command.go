package runlog

import (
	"errors"
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// command logs something about the command of a lease.
func (l *Log) command(level zapcore.Level, of workerlease.Lease, text, message string, fields ...zap.Field) {
	l.say(level, of.Slot, slotText(of.Slot)+": "+text, message, append(fields, zap.Int64("token", of.Token))...)
}

// begin and end note that a command runs, and that it no longer does. end reports whether it was a job.
func (l *Log) begin(of workerlease.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = of.Slot
}

func (l *Log) end(of workerlease.Lease) (job bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running, l.over = slots.Slot{}, of.Slot
	if l.begun.Start.After(of.Slot.Start) {
		l.over = l.begun // Its lease went on.
	}
	return l.job
}

// Started logs that the command was started, and the means by which its guard kills.
func (l *Log) Started(of workerlease.Lease, pid int, means string) {
	l.begin(of)
	l.command(zap.InfoLevel, of, fmt.Sprintf("command started, pid %d", pid), "command started", zap.Int("pid", pid), zap.String("guardedBy", means))
	if !l.json {
		l.command(zap.DebugLevel, of, "guarded by "+means, "")
	}
}

// NotStarted logs why the command wasn't started.
func (l *Log) NotStarted(of workerlease.Lease, err error) {
	level := zap.ErrorLevel
	if failed := !errors.Is(err, guard.ErrTooLate) && !errors.Is(err, guard.ErrSurvivors); l.end(of) && failed && !l.json {
		level = zap.DebugLevel // The line that its job has failed says so, too.
	}
	l.command(level, of, fmt.Sprintf("command not started: %v", err), "command not started", zap.Error(err))
}

// Ended logs how the command ended. The error is that of its guard.
func (l *Log) Ended(of workerlease.Lease, s guard.Status, err error) {
	job := l.end(of)
	level, trouble := zap.InfoLevel, ""
	fields := []zap.Field{zap.Int("exitCode", s.ExitCode()), zap.Stringer("reason", s.Reason)}
	if s.Reason == guard.Exited && s.ExitCode() != 0 {
		level = zap.WarnLevel
		if job && !l.json {
			level = zap.DebugLevel // The line that its job has failed says so, too.
		}
	}
	if err != nil {
		level, trouble = zap.ErrorLevel, ": "+err.Error()
		fields = append(fields, zap.Error(err))
	}
	l.command(level, of, fmt.Sprintf("command: %v%s", s, trouble), "command ended", fields...)
}

// Kept logs that a lease isn't released, because processes of its command could not be killed.
func (l *Log) Kept(of workerlease.Lease) {
	l.command(zap.ErrorLevel, of, "the lease is not released, since the command may still work; no slot follows", "lease kept")
}

// Unreleased logs that the rest of a slot could not be given back.
func (l *Log) Unreleased(err error) {
	l.say(zap.WarnLevel, slots.Slot{}, fmt.Sprintf("not released: %v; the lease ends by itself", err), "not released", zap.Error(err))
}

// ExtendedLate logs why the command ends although its lease goes on.
func (l *Log) ExtendedLate(of workerlease.Lease) {
	l.command(zap.WarnLevel, of, "extended late: the command was already told to end, and is started again", "extended late")
}

// Trouble logs that an order to the guard of the command failed, such as "stop".
func (l *Log) Trouble(order string, err error) {
	l.say(zap.WarnLevel, slots.Slot{}, fmt.Sprintf("order to %s the command failed: %v", order, err), "order to the guard failed", zap.String("order", order), zap.Error(err))
}
