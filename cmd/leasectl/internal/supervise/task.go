package supervise

import (
	"context"
	"errors"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/workerlease"
)

// failedError is a command that has failed.
type failedError struct{ guard.Status }

func (e failedError) Error() string { return e.Status.String() }

// ranError is an error after a command has run for some time.
type ranError struct {
	error

	took time.Duration
}

func (e ranError) Unwrap() error { return e.error }

// Took is what the ledger is told of a lease that is kept.
func (e ranError) Took() time.Duration { return e.took }

// failure is why a command has failed.
func (e ending) failure() error {
	if e.err != nil {
		return ranError{e.err, e.took}
	}
	return ranError{failedError{e.Status}, e.took}
}

// cutError is the failure of a command that was told to end, and why.
type cutError struct {
	error

	by error
}

func (e cutError) Unwrap() []error { return []error{e.error, e.by} }

// failureBy is failure, and that the command was told to end before it had: by the end of its lease, unless that ended early.
func (e ending) failureBy(early error) error {
	switch {
	case e.Reason == guard.Exited || e.Reason == 0:
		return e.failure()
	case early == nil:
		early = workerlease.ErrLeaseExpired
	}
	return cutError{e.failure(), early}
}

// errExtendedLate is the error of a command that was told to end although its lease
// goes on.
var errExtendedLate = cutError{errors.New("told to end, because the lease was extended late"), workerlease.ErrLeaseExpired}

// task runs the command for one slot. Without an error the slot is done. A command
// that was told to end before it had done its work has not failed.
func (j *job) task(ctx context.Context, l workerlease.Lease) error {
	for {
		j.look(&l)
		e := j.under(ctx, &l)
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
		case !e.cut():
			return e.failure()
		case started:
			return errExtendedLate
		}
	}
}
