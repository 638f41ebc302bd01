package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/workerlease"
)

// failoverOf is --failover-within as it applies: with --once-per-slot it has a default.
// The source of truth is the options.go of workerlease.
func failoverOf(f *runFlags, flags *pflag.FlagSet, shortest time.Duration) time.Duration {
	if _, ok := given(flags, "failover-within"); ok || !f.once {
		return f.failover
	}
	return max(min(shortest/4, time.Minute), 8*max(f.margin, leastMargin))
}

// checkOnce notes what is wrong with --once-per-slot and the options that belong to it,
// and with others next to them.
func (a *app) checkOnce(f *runFlags, flags *pflag.FlagSet, shortest time.Duration) {
	if !f.once {
		if text, ok := given(flags, "max-attempts"); ok {
			a.bad("--max-attempts %q: goes with --once-per-slot only", text)
		}
		if f.runMissed {
			a.bad("--run-missed: goes with --once-per-slot only")
		}
		return
	}
	if f.group != "" {
		a.bad("--once-per-slot and --group: give only one of them; a group works in each slot together")
	}
	if f.continuous {
		a.bad("--once-per-slot and --continuous: give only one of them; a job of each slot doesn't go on into the next")
	}
	if _, ok := given(flags, "failover-within"); ok || shortest == 0 {
		return
	}
	switch text, ok := given(flags, "margin"); {
	case shortest < 2*leastFailover:
		a.bad("--once-per-slot: slots of %v are too short for others to try again: at least %v", shortest, 2*leastFailover)
	case ok && failoverOf(f, flags, shortest) > shortest/2:
		a.bad("--margin %q: must be at most a sixteenth of the shortest slot (%v) with --once-per-slot, for others to try again", text, shortest/16)
	}
}

// failedError is a command that has failed.
type failedError struct{ guard.Status }

func (e failedError) Error() string { return e.Status.String() }

// errExtendedLate is a command that was told to end although its lease goes on.
var errExtendedLate = errors.New("told to end, since the lease was extended late")

// task runs the command for one slot. Without an error its work is done; a command
// that was told to end, and has not done it, is no failure.
func (j *job) task(ctx context.Context, l workerlease.Lease) error {
	slot := l.Slot
	if l.Missed {
		// Its lease is that of the slot after it, and is extended as that.
		l.Slot = j.schedule.At(l.Start)
	}
	for {
		j.look(&l)
		e := j.under(ctx, &l, slot)
		started := e.Reason != 0
		switch {
		case started && e.ExitCode() == 0:
			return nil
		case e.cut() && !j.timeAgain(ctx, &l, e), started && ctx.Err() != nil && e.Reason == guard.Stopped:
			return context.Cause(ctx)
		case e.Reason == guard.Killed:
			<-ctx.Done() // It was killed because leasing is to end at once.
			return context.Cause(ctx)
		case !e.cut() && e.err != nil:
			return e.err
		case !e.cut():
			return failedError{e.Status}
		case started:
			return errExtendedLate
		}
	}
}
