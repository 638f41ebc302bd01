package storekit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

const (
	// checkAgain is how long a check counts, and checkSoon if an operation or a check has failed since.
	checkAgain = 10 * time.Minute
	checkSoon  = 30 * time.Second
	// checkPatience bounds a check, and checkWait how long an operation waits for one if the database was found
	// fit before. checkExpiry is how long that is believed while checks fail.
	checkPatience = 15 * time.Second
	checkWait     = time.Second
	checkExpiry   = 2 * time.Hour
)

// Fitness remembers whether a database can keep a ledger. It checks at the first use, again every 10 min, and
// after an operation failed as operations do when the database has changed, but at most every 30 s. One check is made at a
// time. While checks fail for want of a connection, an earlier success counts for 2 h; a check that says
// store.ErrRefused or store.ErrMissing counts at once, and is repeated by the next operation.
type Fitness struct {
	clock clock.Clock
	check func(ctx context.Context) error

	mu sync.Mutex
	// since is when the database was found fit, tried when the last check began or succeeded, and due when it is to be
	// checked again, by the clock.
	since, tried, due time.Time
	unfit             bool // The newest check refused, or counts no more.
	looking           *looking
}

// looking is a check in progress. It ends when nobody waits for it any more.
type looking struct {
	done    chan struct{}
	err     error
	waiting int
	cancel  context.CancelCauseFunc
}

// NewFitness returns one that knows nothing yet. check is called with a context that ends after 15 s; its error is
// store.ErrRefused (see Flaw) or store.ErrMissing if the database can't keep a ledger.
func NewFitness(c clock.Clock, check func(ctx context.Context) error) *Fitness {
	return &Fitness{clock: c, check: check}
}

// Ensure returns nil if the database was found fit recently enough, and else checks it.
func (f *Fitness) Ensure(ctx context.Context) error {
	f.mu.Lock()
	now := f.clock.Now()
	known := !f.since.IsZero() && !f.unfit && now.Sub(f.since) < checkExpiry
	if known && (now.Before(f.due) || f.looking != nil) {
		f.mu.Unlock()
		return nil
	}
	return f.wait(ctx, known)
}

// Check checks now, however recent the last check is.
func (f *Fitness) Check(ctx context.Context) error {
	f.mu.Lock()
	f.looking = nil // It may have begun before what the caller has done.
	return f.wait(ctx, false)
}

// wait waits for a check, which it begins unless there is one. The caller holds mu, which it releases. known: the
// database was found fit before.
func (f *Fitness) wait(ctx context.Context, known bool) error {
	l := f.join(ctx)
	f.mu.Unlock()
	var enough <-chan time.Time
	if known {
		timer := f.clock.Timer(checkWait)
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case <-l.done:
		f.leave(l)
		if known && !refuses(l.err) {
			return nil
		}
		return l.err
	case <-ctx.Done():
		f.leave(l)
		return fault.Ended(ctx)
	case <-enough:
		return nil // The check goes on, because this operation still counts as waiting.
	}
}

// Doubt lets the next operation that comes 30 s after the last check, or later, check again.
func (f *Fitness) Doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.soon()
}

// Suspect lets the next operation check, and wait for that as for others: up to 1 s. What was found counts until a check says
// otherwise, so that operations go on if none can be made.
func (f *Fitness) Suspect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.due = time.Time{}
}

// soon makes a check due 30 s after the last one. The caller holds mu.
func (f *Fitness) soon() {
	if soon := f.tried.Add(checkSoon); f.due.After(soon) {
		f.due = soon
	}
}

// Forget lets the next operation check, and wait for it: what was found no longer counts, nor does what a check in progress
// finds. It is for a store that has learned otherwise.
func (f *Fitness) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looking, f.unfit = nil, true
}

// join begins a check, or takes part in the one in progress. The caller holds mu.
func (f *Fitness) join(ctx context.Context) *looking {
	l := f.looking
	if l == nil {
		inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		inner = context.WithValue(inner, goneKey{}, inner) // It is for others, too, once the caller has gone.
		inner = context.WithValue(inner, sendingKey{}, nil)
		l = &looking{done: make(chan struct{}), cancel: cancel}
		f.looking, f.tried = l, f.clock.Now()
		tooLong := f.clock.AfterFunc(checkPatience, func() { f.abandon(l) })
		go func() {
			defer tooLong.Stop()
			defer cancel(context.Canceled)
			err := f.check(inner)
			if err != nil && errors.Is(context.Cause(inner), errTooLong) {
				err = fmt.Errorf("%w: %w", errTooLong, err)
			}
			f.settle(l, err)
		}()
	}
	l.waiting++
	return l
}

// errTooLong is the cause with which a check ends that takes too long.
var errTooLong = fmt.Errorf("the check of the database took longer than %v: %w", checkPatience, context.DeadlineExceeded)

// abandon ends a check that takes too long. Code that ignores its context isn't waited for by later operations.
func (f *Fitness) abandon(l *looking) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.looking == l {
		f.looking, f.due = nil, f.tried.Add(checkSoon)
	}
	l.cancel(errTooLong)
}

// leave ends a check that nobody waits for.
func (f *Fitness) leave(l *looking) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.waiting--; l.waiting == 0 {
		if f.looking == l {
			f.looking = nil
		}
		l.cancel(context.Canceled)
	}
}

// settle takes in the result of a check.
func (f *Fitness) settle(l *looking, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.err = err
	close(l.done)
	if f.looking != l {
		return // It was given up.
	}
	f.looking = nil
	now := f.clock.Now()
	switch {
	case err == nil:
		f.since, f.tried, f.due, f.unfit = now, now, now.Add(checkAgain), false
	case refuses(err):
		f.unfit = true
	default:
		f.due = f.tried.Add(checkSoon)
	}
}

// refuses reports whether a check has found that a database can't keep a ledger.
func refuses(err error) bool {
	return errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrMissing)
}
