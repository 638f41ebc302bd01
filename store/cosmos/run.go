package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

const (
	// maxTries bounds how often a throttled or 449 request is sent, even if the
	// context has no deadline.
	maxTries = 10
	// throttledPause is the wait if a throttling reply names none.
	throttledPause = 100 * time.Millisecond
	// retryPause is the first wait after a 449; each is twice the one before.
	retryPause = 10 * time.Millisecond
	// maxPause bounds both.
	maxPause = time.Second
)

// outcome is the result of an operation.
type outcome[T any] struct {
	value T
	err   error
}

// run performs an operation and ends with its context, whatever the SDK does
// meanwhile.
//
// The SDK doesn't get the deadline, but is cancelled at it: a dialer would measure it
// by the machine's wall clock, which may differ from the context's clock.
func run[T any](ctx context.Context, l *Ledger, op, key string, do func(context.Context, *conn) (T, error)) (T, error) {
	return runOn(ctx, l, op, key, l.connected, do)
}

// runOn is run on a connection from another source.
func runOn[T any](ctx context.Context, l *Ledger, op, key string, connect func(context.Context) (*conn, error), do func(context.Context, *conn) (T, error)) (T, error) {
	var none T
	if err := l.open(ctx); err != nil {
		return none, l.failed(ctx, op, key, err)
	}
	x := &exchange{}
	inner, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), exchangeKey{}, x))
	defer cancel()
	done := make(chan outcome[T], 1)
	go func() {
		var o outcome[T]
		o.value, o.err = patiently(inner, ctx, l, connect, do)
		done <- o
	}()
	select {
	case o := <-done:
		return o.value, l.failed(ctx, op, key, o.err)
	case <-ctx.Done():
	case <-l.life.Done():
	}
	cancel()
	select {
	case o := <-done:
		// The reply may have been there already.
		return o.value, l.failed(ctx, op, key, o.err)
	default:
	}
	err := ctx.Err()
	if err == nil {
		err = store.ErrClosed
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failure != "" {
		err = fmt.Errorf("%w: %s", err, x.failure)
	}
	return none, l.failed(ctx, op, key, err)
}

// open fails if the ledger is closed or the context is over.
func (l *Ledger) open(ctx context.Context) error {
	if l.closed.Load() {
		return store.ErrClosed
	}
	return fault.Ended(ctx)
}

// patiently retries throttled and 449 requests while the wait fits in the caller's
// deadline.
func patiently[T any](ctx, caller context.Context, l *Ledger, connect func(context.Context) (*conn, error), do func(context.Context, *conn) (T, error)) (T, error) {
	for try := 1; ; try++ {
		c, err := connect(ctx)
		var value T
		if err == nil {
			value, err = do(ctx, c)
		}
		if err == nil {
			return value, nil
		}
		if c != nil && dubious(err) {
			l.link.doubt(c, err)
		}
		pause, again := comeAgain(err, try)
		if !again || try == maxTries || pause > 0 && !l.wait(ctx, caller, pause) {
			return value, err
		}
	}
}

// comeAgain reports whether a failed request may be sent again unchanged, and how long
// to wait first.
func comeAgain(err error, try int) (time.Duration, bool) {
	growing := func(first time.Duration) time.Duration { return min(first<<min(try-1, 10), maxPause) }
	switch {
	case isStatus(err, http.StatusTooManyRequests):
		if asked := retryAfter(err); asked > 0 {
			return asked, true
		}
		return growing(throttledPause), true
	case isStatus(err, statusRetryWith):
		return growing(retryPause), true
	case isStatus(err, http.StatusUnauthorized), isStatus(err, http.StatusForbidden):
		return 0, try == 1 && misdated(replyOf(err))
	}
	return 0, false
}

// wait waits, or returns false: at once if the deadline would pass meanwhile, and
// when the context ends.
func (l *Ledger) wait(ctx, caller context.Context, d time.Duration) bool {
	// The deadline may be by another clock. In the worst case the caller gets a
	// ThrottledError, or waits until the context ends.
	if deadline, ok := caller.Deadline(); ok && deadline.Sub(l.clock.Now()) <= d {
		return false
	}
	t := l.clock.Timer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-l.life.Done():
	}
	return false
}

// retryAfter is the wait that a throttling reply names, in whole or decimal
// milliseconds, or zero.
func retryAfter(err error) time.Duration {
	r := replyOf(err)
	if r == nil {
		return 0
	}
	if ms, err := strconv.ParseFloat(r.Header.Get(headerRetryAfter), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	if s, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s) * time.Second
	}
	return 0
}
