package cosmos

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
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

// run performs an operation on a connection that was found fit.
func run[T any](ctx context.Context, l *Ledger, op, key string, do func(context.Context, *conn) (T, error)) (T, error) {
	return storekit.RunUnchecked(ctx, l.runner, op, key, task(ctx, l, l.connected, do))
}

// task is what an operation does: it finds a connection, and retries throttled and 449 requests while the wait
// fits in the caller's deadline.
func task[T any](caller context.Context, l *Ledger, connect func(context.Context) (*conn, error), do func(context.Context, *conn) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		for try, begun := 1, false; ; try++ {
			var value T
			c, err := connect(ctx)
			if err == nil {
				begun = true
				value, err = do(ctx, c)
			}
			if err == nil {
				return value, nil
			}
			if c != nil && dubious(err) {
				l.doubt(c, err)
			}
			pause, again := l.comeAgain(err, try)
			switch stays := !again || try == maxTries || pause > 0 && !l.wait(ctx, caller, pause); {
			case stays && !begun:
				return value, storekit.NotStored(explain(err))
			case stays:
				return value, explain(err)
			}
		}
	}
}

// comeAgain reports whether a failed request may be sent again unchanged, and how long
// to wait first.
func (l *Ledger) comeAgain(err error, try int) (time.Duration, bool) {
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
		return 0, try == 1 && l.misdated(replyOf(err))
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
