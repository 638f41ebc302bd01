package runlog

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// command logs something about the command of a lease.
func (l *Log) command(level zapcore.Level, of workerlease.Lease, text, message string, fields ...zap.Field) {
	l.say(level, of.Slot, slotText(of.Slot)+": "+text, message, append(fields, zap.Int64("token", of.Token))...)
}

// begin and end note that a command runs, and that it no longer does. end reports whether its failure is reported
// as that of a task.
func (l *Log) begin(of workerlease.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = of.Slot
}

func (l *Log) end(of workerlease.Lease) (tells bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running, l.over = slots.Slot{}, of.Slot
	if l.begun.Start.After(of.Slot.Start) {
		l.over = l.begun // Its lease went on.
	}
	return l.tells
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
		level = zap.DebugLevel // The line that its task has failed says so, too.
	}
	l.command(level, of, fmt.Sprintf("command not started: %v", err), "command not started", zap.Error(err))
}

// Ended logs how the command ended. cause is why its lease had ended by then, or nil, and the error is that of its guard.
func (l *Log) Ended(of workerlease.Lease, s guard.Status, cause, err error) {
	tells := l.end(of)
	level, trouble := zap.InfoLevel, ""
	reason := s.Reason.String()
	for _, unasked := range []error{workerlease.ErrTimedOut, workerlease.ErrStalled, workerlease.ErrIneligible} {
		if s.Reason == guard.Stopped && errors.Is(cause, unasked) {
			reason = "stopped: " + unasked.Error()
		}
	}
	fields := []zap.Field{zap.Int("exitCode", s.ExitCode()), zap.String("reason", reason)}
	if s.Reason == guard.Exited && s.ExitCode() != 0 {
		level = zap.WarnLevel
		if tells && !l.json {
			level = zap.DebugLevel // The line that its task has failed says so, too.
		}
	}
	if l.once && s.Reason == guard.DeadlineReached && s.ExitCode() != 0 {
		level = zap.WarnLevel // No next slot makes up for it.
	}
	if err != nil {
		level, trouble = zap.ErrorLevel, ": "+err.Error()
		fields = append(fields, zap.Error(err))
	}
	l.command(level, of, fmt.Sprintf("command: %s%s", s.With(reason), trouble), "command ended", fields...)
}

// Restarting logs that the command is started again after a wait.
func (l *Log) Restarting(of workerlease.Lease, wait time.Duration) {
	l.command(zap.InfoLevel, of, fmt.Sprintf("the command is started again in %v", wait), "command restarts", zap.Duration("wait", wait))
}

// Unclaimed logs why a slot that was waited for can't be had. What an event has said already is not said again.
func (l *Log) Unclaimed(n *workerlease.NotClaimed) {
	level, text := zap.WarnLevel, ""
	switch n.Why {
	case workerlease.AlreadyDone:
		return
	case workerlease.HeldByAnother:
		text = fmt.Sprintf("not done yet by %q, and not waited for any longer", n.Holder)
		if n.Work != "" && l.work != "" && n.Work != l.work {
			text += fmt.Sprintf("; it has it for another command (%s): give each a worker type of its own", n.Work)
		}
	case workerlease.TooSoon:
		text = fmt.Sprintf("the next attempt comes after %s, and is not waited for", display.Clock(n.Until))
	case workerlease.PassedOver:
		text = fmt.Sprintf("skipped, since %q still ran for an earlier one", n.Holder)
	default:
		if !l.json {
			return
		}
	}
	l.say(level, n.Slot, slotText(n.Slot)+": "+text, "not claimed", zap.String("why", string(n.Why)))
}

// Kept logs that a lease isn't released, because processes of its command could not be killed.
func (l *Log) Kept(of workerlease.Lease) {
	l.command(zap.ErrorLevel, of, "the lease is not released, since the command may still work; no slot follows", "lease kept")
}

// Unended logs that a job could not be ended while others go on.
func (l *Log) Unended(err error) {
	l.say(zap.WarnLevel, slots.Slot{}, err.Error(), "not ended", zap.Error(err))
}

// Unbegun logs that a job could not be begun while others go on.
func (l *Log) Unbegun(err error) {
	l.say(zap.ErrorLevel, slots.Slot{}, "not begun: "+err.Error(), "not begun", zap.Error(err))
}

// Unreleased logs that the rest of a slot could not be given back.
func (l *Log) Unreleased(err error) {
	l.say(zap.WarnLevel, slots.Slot{}, fmt.Sprintf("not released: %v; the lease ends by itself", err), "not released", zap.Error(err))
}

// ExtendedLate logs why the command ends although its lease goes on.
func (l *Log) ExtendedLate(of workerlease.Lease) {
	l.command(zap.WarnLevel, of, "extended late: the command was already told to end", "extended late")
}

// Trouble logs that an order to the guard of the command failed, such as "stop".
func (l *Log) Trouble(order string, err error) {
	l.say(zap.WarnLevel, slots.Slot{}, fmt.Sprintf("order to %s the command failed: %v", order, err), "order to the guard failed", zap.String("order", order), zap.Error(err))
}
