package storekit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// This file is what an operation that goes on says of itself, for the case that its caller leaves before it has ended.

// troubleKey is the context key of the trouble of an operation.
type troubleKey struct{}

// trouble is what went wrong last in an operation that goes on.
type trouble struct{ err atomic.Pointer[error] }

// Trouble notes what went wrong with a request of an operation that Run performs, and that may make it again. If the operation
// ends with its context, or with the ledger, before it has succeeded or failed, its error says that, too. It may have secrets.
func Trouble(ctx context.Context, text string) { TroubleBy(ctx, errors.New(text)) }

// TroubleBy is Trouble with an error, which the operation's wraps. nil: the trouble is over.
func TroubleBy(ctx context.Context, err error) {
	if t, ok := ctx.Value(troubleKey{}).(*trouble); ok {
		t.err.Store(&err)
	}
}

// after is the error of an operation that was ended, and the trouble that it had by then.
func (t *trouble) after(ended error) error {
	if err := t.err.Load(); err != nil && *err != nil {
		return fmt.Errorf("%w: %w", ended, *err)
	}
	return ended
}

// sendingKey is the context key of whether an operation has sent anything.
type sendingKey struct{}

// sending is whether an operation has sent anything: it may have, unless it says otherwise.
type sending struct{ state atomic.Int32 }

const (
	maySend int32 = iota
	unsent
	mayNot // Its caller has gone.
)

// Unsent says that an operation that Run performs has sent nothing of what it may store, and sends nothing before it calls Send. If its
// caller goes, or the ledger is closed, before that, the error matches store.ErrNotStored.
func Unsent(ctx context.Context) {
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
		s.state.CompareAndSwap(maySend, unsent)
	}
}

// Send ends what Unsent has said. If it returns an error, nothing may be sent any more: somebody was told that nothing is stored.
func Send(ctx context.Context) error {
	s, ok := ctx.Value(sendingKey{}).(*sending)
	if ok && !s.state.CompareAndSwap(unsent, maySend) && s.state.Load() == mayNot {
		return context.Canceled
	}
	return nil
}

// end is the error of an operation whose caller goes.
func (s *sending) end(ended error) error {
	if s.state.CompareAndSwap(unsent, mayNot) {
		return NotStored(ended)
	}
	return ended
}
