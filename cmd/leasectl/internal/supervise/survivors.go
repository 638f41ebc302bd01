package supervise

import (
	"context"
	"errors"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/workerlease"
)

// kept is a lease that isn't given back because processes of its command could not be
// killed, and may be working.
type kept struct {
	// known ends, with the guard's error as its cause, when there are such processes.
	known context.Context
	say   context.CancelCauseFunc
	// over is closed when the worker begins nothing on the ledger any more.
	over chan struct{}
}

func newKept() kept {
	known, say := context.WithCancelCause(context.Background())
	return kept{known, say, make(chan struct{})}
}

// hold keeps a lease for processes that may run on, if that is what the error of a guard
// says, and reports whether it did. It returns only when the worker has given up: until then the
// lease isn't released, the slot isn't recorded as done, and no other begins.
func (j *job) hold(l workerlease.Lease, err error) bool {
	if !errors.Is(err, guard.ErrSurvivors) {
		return false
	}
	j.Log.Kept(l)
	j.kept.say(err)
	<-j.kept.over
	return true
}

// error is that of a kept lease, or nil.
func (k kept) error() error {
	if k.known.Err() == nil {
		return nil
	}
	e := exit.With(exit.Survivors, context.Cause(k.known))
	e.Try = "end these processes, and only then start leasectl again; the lease was not released"
	return e
}
