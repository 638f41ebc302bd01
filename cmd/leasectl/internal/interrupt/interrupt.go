// Package interrupt turns signals into the end of contexts.
package interrupt

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// The causes with which contexts end.
var (
	// Err is the cause after a signal. The error that wraps it names the signal.
	Err = errors.New("interrupted")
	// ErrUnread is the cause when the reader of the output has gone.
	ErrUnread = errors.New("nobody reads the output any more")
)

// caughtError is Err with the signal's name.
type caughtError struct{ os.Signal }

func (e caughtError) Error() string { return e.String() }
func (caughtError) Unwrap() error   { return Err }

// together is how far apart signals may come and still be one wish: timeout, a
// process group and its shell each send one.
const together = time.Second

// Signals are the wishes of the user: the first signal ends the context, a second
// one is urgent, and the next ends the process as if nothing had caught it. Signals
// that come within a second of one before the last are one with it.
type Signals struct {
	// Urgent is closed at the second signal.
	Urgent <-chan struct{}
	// Third has a third signal be a wish, too, from now on, at which the channel is closed.
	Third func() <-chan struct{}
	// Stop lets signals end the process again.
	Stop func()
	// Reloads makes SIGHUP a wish to reload from now on, which the channel gets, in place of one to end.
	Reloads func() <-chan struct{}
}

// Catch returns a context that ends at the first SIGINT, SIGTERM or SIGHUP.
func Catch(parent context.Context) (context.Context, Signals) {
	ctx, cancel := context.WithCancelCause(parent)
	caught := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		// A signal that nohup, or a shell for its background jobs, ignores stays ignored.
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	urgent, third, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var three atomic.Bool
	var reloads atomic.Pointer[chan struct{}]
	passed := func(s os.Signal) bool {
		to := reloads.Load()
		if s != syscall.SIGHUP || to == nil {
			return false
		}
		select {
		case *to <- struct{}{}:
		default: // One is to come, which has what this one means.
		}
		return true
	}
	go heed(caught, ended, passed, func(n int, s os.Signal) (more bool) {
		switch n {
		case 1:
			cancel(caughtError{s})
			return true
		case 2:
			close(urgent)
			if three.Load() {
				return true
			}
		default:
			close(third)
		}
		signal.Stop(caught)
		return false
	})
	catchThird := func() <-chan struct{} {
		three.Store(true)
		return third
	}
	return ctx, Signals{Urgent: urgent, Third: catchThird, Stop: func() {
		signal.Stop(caught)
		close(ended)
		cancel(context.Canceled)
	}, Reloads: func() <-chan struct{} {
		to := make(chan struct{}, 1)
		reloads.Store(&to)
		return to
	}}
}

// heed has each signal that isn't passed on be a wish, the nth from 1 on, until that wants no more or ended is closed.
func heed(caught <-chan os.Signal, ended <-chan struct{}, passed func(os.Signal) bool, wish func(n int, s os.Signal) (more bool)) {
	n, at := 0, time.Time{} // at: when the newest came that counts
	for {
		select {
		case s := <-caught:
			now := time.Now()
			if passed(s) || n > 0 && now.Sub(at) <= together {
				continue
			}
			if n, at = n+1, now; !wish(n, s) {
				return
			}
		case <-ended:
			return
		}
	}
}

// Heard makes a write to the standard output or error fail whose reader has gone, until
// stop is called. Without it, such a write ends the process at once, with nothing closed or
// released. Processes that are started meanwhile end by the signal, as usual.
func Heard() (stop func()) {
	caught := make(chan os.Signal, 1) // the failed write says more
	signal.Notify(caught, syscall.SIGPIPE)
	return func() { signal.Stop(caught) }
}

// Unread reports whether writing failed because the reader has gone.
func Unread(err error) bool { return errors.Is(err, syscall.EPIPE) }

// UntilUnread returns a context that ends when a write finds that its reader is
// gone, also one that nobody looks at the error of.
// Only a command that writes to no other pipe and no socket may use it: the signal
// doesn't say which write failed.
func UntilUnread(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGPIPE)
	go func() {
		select {
		case <-caught:
			cancel(ErrUnread)
		case <-ctx.Done():
		}
	}()
	// The signal stays caught: the last lines may have no reader, either.
	return ctx, func() { cancel(context.Canceled) }
}
