package supervise

import (
	"context"
	"errors"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/workerlease"
)

// failedError is a command that has failed.
type failedError struct{ guard.Status }

func (e failedError) Error() string { return e.Status.String() }

// errExtendedLate is the error of a command that was told to end although its lease
// goes on.
var errExtendedLate = errors.New("told to end, because the lease was extended late")

// task runs the command for one slot. Without an error the slot is done. A command
// that was told to end before it had done its work has not failed.
func (j *job) task(ctx context.Context, l workerlease.Lease) error {
	slot := l.Slot
	if l.Missed {
		// Its lease is that of the slot after it, and is extended as that.
		l.Slot = j.Options.Schedule.At(l.Start)
	}
	for {
		j.look(&l)
		e := j.under(ctx, &l, slot)
		started := e.Reason != 0
		switch {
		case e.held:
			return context.Cause(ctx) // Leasing has ended.
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
