package storekit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"
)

// CurrentTime bounds how long a Current waits for an answer.
const CurrentTime = 10 * time.Second

// Current asks the application for a secret that changes: a password, a token, or a key. It asks one question at a
// time, so that a function that hangs holds up one goroutine and no more.
type Current struct {
	name  string
	ask   func(ctx context.Context) (string, error)
	clock clock.Clock
	turn  chan struct{}
}

// NewCurrent makes a Current of the option with that name, or returns nil if the option isn't set.
func NewCurrent(name string, ask func(ctx context.Context) (string, error), c clock.Clock) *Current {
	if ask == nil {
		return nil
	}
	return &Current{name: name, ask: ask, clock: c, turn: make(chan struct{}, 1)}
}

// Get asks for the secret of now. It returns after CurrentTime at most, even if the function goes on. Its errors name
// the option, say that nothing was stored, and don't hold the secret that the function returned. The text of the function's own error
// is shown as it is, and what it panics with isn't.
func (c *Current) Get(ctx context.Context) (string, error) {
	Trouble(ctx, c.name+" has not answered")
	ctx, cancel := c.clock.WithTimeout(ctx, CurrentTime)
	defer cancel()
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return "", c.late(ctx)
	}
	type answer struct {
		secret string
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("it panicked")}
		defer func() {
			_ = recover() // Nobody else could: the goroutine is ours.
			<-c.turn
			answered <- a
		}()
		secret, err := c.ask(ctx)
		a = answer{secret, err}
	}()
	select {
	case a := <-answered:
		switch {
		case a.err != nil:
			return "", NotStored(fmt.Errorf("%s: %w", c.name, a.err))
		case a.secret == "":
			return "", NotStored(fmt.Errorf("%s: it returned neither a secret nor an error", c.name))
		}
		TroubleBy(ctx, nil)
		return a.secret, nil
	case <-ctx.Done():
		return "", c.late(ctx)
	}
}

func (c *Current) late(ctx context.Context) error {
	return NotStored(fmt.Errorf("%s: no answer in time, which is %v at most: %w", c.name, CurrentTime, context.Cause(ctx)))
}
