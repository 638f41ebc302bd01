package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// The causes with which contexts end at the first signal.
var (
	errInterrupted = errors.New("interrupted")
	errPipe        = errors.New("nobody reads the output any more")
)

// caughtError is errInterrupted with the signal's name.
type caughtError struct{ os.Signal }

func (e caughtError) Error() string { return e.String() }
func (caughtError) Unwrap() error   { return errInterrupted }

// signals are the wishes of the user: the first one ends the context, the second
// one is urgent, and the third ends the process as if nothing had caught it.
type signals struct {
	urgent <-chan struct{}
	stop   func()
}

// catchSignals returns a context that ends at the first SIGINT, SIGTERM or
// SIGHUP.
func catchSignals(parent context.Context) (context.Context, signals) {
	ctx, cancel := context.WithCancelCause(parent)
	caught := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		// What nohup, or a shell for its background jobs, ignores stays ignored.
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	urgent, ended := make(chan struct{}), make(chan struct{})
	go func() {
		for first := true; ; {
			var s os.Signal
			select {
			case s = <-caught:
			case <-ended:
				return
			}
			if first {
				first = false
				cancel(caughtError{s})
				continue
			}
			signal.Stop(caught)
			close(urgent)
			return
		}
	}()
	return ctx, signals{urgent: urgent, stop: func() {
		signal.Stop(caught)
		close(ended)
		cancel(context.Canceled)
	}}
}

// untilUnread returns a context that ends when a write finds that its reader is
// gone. Without it such a write to the standard output ends the process on the
// spot. It is only for commands that write to no other pipe and no socket: the
// signal doesn't tell where it comes from.
func untilUnread(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGPIPE)
	go func() {
		select {
		case <-caught:
			cancel(errPipe)
		case <-ctx.Done():
		}
	}()
	// The signal stays caught: the last words may have no reader, either.
	return ctx, func() { cancel(context.Canceled) }
}
