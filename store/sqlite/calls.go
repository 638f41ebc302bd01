package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/internal/filelock"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// otherLogTimeout is how long an operation waits for a handle that has the file open
// with another log. The last to close a ledger removes its log, and just after that it
// may still seem to be in use.
const otherLogTimeout = 250 * time.Millisecond

// do runs one operation in a separate goroutine, and repeats it while the file is
// locked. So it returns as soon as its context ends, even if the disk hangs. An
// abandoned operation ends by itself; Close waits for it.
func do[T any](ctx context.Context, l *Ledger, op, key string, act func(ctx context.Context) (T, error)) (value T, err error) {
	value, err = attempt(ctx, l, patience{waits: new(atomic.Int64)}, act)
	if err != nil {
		err = fmt.Errorf("sqlite: %s %s: %w", op, key, err)
	}
	return value, err
}

// attempt is do for one that may have waited before. Its errors don't name the operation.
func attempt[T any](ctx context.Context, l *Ledger, p patience, act func(ctx context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, fault.Ended(ctx)
	}
	if err := l.begin(); err != nil {
		return none, err
	}

	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	var locked atomic.Bool
	l.run(func() {
		defer l.calls.Done()
		var o outcome
		o.err = l.patiently(ctx, p, func() (err error) {
			o.value, err = act(ctx)
			if locked.Store(isLocked(err)); locked.Load() {
				filelock.Found(ctx, p.waited())
			}
			return err
		})
		if o.err != nil {
			o.err = l.advise(l.explain(ctx, o.err))
		}
		done <- o
	})
	select {
	case o := <-done:
		if o.err != nil {
			return none, o.err
		}
		return o.value, nil
	case <-ctx.Done():
		return none, l.givenUp(ctx, locked.Load())
	}
}

// givenUp is the error of an operation whose context has ended, and whether it waited for another process then.
func (l *Ledger) givenUp(ctx context.Context, locked bool) error {
	if err := fault.Ended(ctx); err == nil || !locked {
		return err
	}
	return fmt.Errorf("%w: %s is locked by another process: fuser -v %[2]s lists those that have it open", fault.Ended(ctx), l.o.Path)
}

// run calls act in a goroutine: in one that has ended another act, if one is there. SQLite needs a large stack, and
// a new goroutine has to grow it first.
func (l *Ledger) run(act func()) {
	select {
	case l.acts <- act:
		return
	default:
	}
	go func() {
		for act != nil {
			act()
			act = nil
			if !l.idle.CompareAndSwap(false, true) {
				return // Another waits: one is enough.
			}
			select {
			case act = <-l.acts:
			case <-l.ended:
			}
			l.idle.Store(false)
		}
	}()
}

// begin notes a call, for which Close waits until it is done.
func (l *Ledger) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return store.ErrClosed
	}
	l.calls.Add(1)
	return nil
}

// The pauses before what found the file locked is repeated. Each is twice the one before.
const (
	firstPause = 500 * time.Microsecond
	lastPause  = 16 * time.Millisecond
)

// patience is how long an operation has waited for locks. It is counted, not read from the clock,
// so that stepping the clock can't prolong it.
type patience struct {
	waits *atomic.Int64 // nanoseconds, of all operations that wait one after the other
	from  int64         // what of it was before this operation
}

func (p patience) waited() time.Duration { return time.Duration(p.waits.Load() - p.from) }

// patiently repeats act while it finds the file locked. SQLite's own busy wait is off,
// because a context can't end it.
func (l *Ledger) patiently(ctx context.Context, p patience, act func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := act()
		if err == nil || !isBusy(err) {
			return err
		}
		if err := l.impatient(p.waited(), err); err != nil {
			return err
		}
		timer := l.o.Clock.Timer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return l.givenUp(ctx, isLocked(err))
		case <-timer.C:
			p.waits.Add(int64(pause))
		}
	}
}

// impatient is the error of an operation that has waited for so long, for a reason, that it isn't
// repeated; else nil.
func (l *Ledger) impatient(waited time.Duration, why error) error {
	switch {
	case errors.Is(why, errOtherLog) && waited >= otherLogTimeout:
		return why
	case waited < l.o.BusyTimeout:
		return nil
	case errors.Is(why, errChanged), errors.Is(why, errOtherLog):
		return why
	default:
		return fmt.Errorf("busy: locked by another process for %v, %w: fuser -v %s lists those that have it open: %w", l.o.BusyTimeout, store.ErrNotStored, l.o.Path, why)
	}
}
