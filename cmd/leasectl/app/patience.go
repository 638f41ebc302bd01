package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/filelock"
	"github.com/slotlease/slotlease/store"
)

// openTimeout bounds how long run opens its store, and openAgain is how long it waits before
// it tries again. Other commands that have written nothing for silence say that they wait.
const (
	openTimeout = 5 * time.Second
	openAgain   = 2 * time.Second
	silence     = 2500 * time.Millisecond
	lockWait    = 300 * time.Millisecond // Workers have a file locked for less.
)

// awaited is target for a command that answers soon. If nothing is written for a while, neither an answer nor a question,
// it says which store it is waiting for, and of a file that is locked, as soon as that isn't a worker's.
func (a *app) awaited(c *cobra.Command) storeuri.Target {
	t := a.target(c)
	switch {
	case t.Scheme == "":
		return t
	case t.IsFile():
		var told sync.Once
		c.SetContext(filelock.Watched(c.Context(), func(waited time.Duration) {
			if waited >= lockWait {
				told.Do(func() {
					a.errorf("leasectl: waiting: %s is locked by another process; fuser -v %[1]s lists those that have it open\n", display.Flat(t.Path()))
				})
			}
		}))
		return t
	}
	notice := time.AfterFunc(silence, func() {
		if !a.spoke.Load() && c.Context().Err() == nil {
			a.errorf("leasectl: still waiting for %s\n", display.Flat(a.scrub(t.Place())))
		}
	})
	context.AfterFunc(c.Context(), func() { notice.Stop() }) // when the command has ended
	return t
}

// speaking is a writer that notes that something was written.
type speaking struct {
	io.Writer

	spoke *atomic.Bool
}

func (s speaking) Write(b []byte) (int, error) {
	s.spoke.Store(true)
	return s.Writer.Write(b)
}

// hurried is a writer that is waited for no longer than a second, and for nothing once it was late.
type hurried struct {
	io.Writer

	late atomic.Bool
}

func (h *hurried) Write(b []byte) (int, error) {
	if h.late.Load() {
		return len(b), nil
	}
	written := make(chan error, 1)
	go func(b []byte) {
		_, err := h.Writer.Write(b)
		written <- err
	}(bytes.Clone(b))
	select {
	case err := <-written:
		return len(b), err
	case <-time.After(time.Second):
		h.late.Store(true)
		return len(b), nil
	}
}

// openPatiently opens a ledger, and tries again as long as only the DNS is in the way, which a
// mongodb+srv URI needs to find its servers. report gets each failure of that kind. It returns
// the last error if ctx ends.
func openPatiently(ctx context.Context, report func(error), open func(context.Context) (store.Ledger, error)) (store.Ledger, error) {
	again := time.NewTicker(openAgain)
	defer again.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, openTimeout)
		l, err := open(limited)
		cancel()
		if err == nil || !unresolved(err) || ctx.Err() != nil {
			return l, err
		}
		report(err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-again.C:
		}
	}
}

// unresolved reports that the DNS didn't answer. If it says that there is no such name,
// waiting doesn't help.
func unresolved(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && !e.IsNotFound
}
