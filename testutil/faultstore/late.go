package faultstore

import (
	"context"
	"time"

	"github.com/slotlease/slotlease/store"
)

// landLater appends a record to the inner ledger after d. It sets the timer before it
// returns, so that a mock clock that is moved afterwards reaches it.
func (l *Ledger) landLater(c Call, d time.Duration) error {
	timer := l.clock.Timer(max(d, 1))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		timer.Stop()
		return store.ErrClosed
	}
	l.struck[KindLate]++
	l.pending++
	l.late.Go(func() {
		defer l.landed()
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			return
		}
		if err := l.land(c); err != nil {
			l.strike(KindMissed)
			return
		}
		l.strike(KindLanded)
	})
	return nil
}

// land carries out an append.
func (l *Ledger) land(c Call) error {
	if c.Prev.Seq == 0 {
		return l.inner.Append(l.ctx, c.Record)
	}
	f, err := able[store.Follower](&l.through, "append after a record")
	if err != nil {
		return err
	}
	return f.AppendAfter(l.ctx, c.Record, c.Prev)
}

func (l *Ledger) landed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending--; l.pending == 0 {
		close(l.settled)
		l.settled = make(chan struct{})
	}
}

// Pending is the number of delayed appends that have neither landed nor missed.
func (l *Ledger) Pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending
}

// Settle waits until no append is pending. Another goroutine must move a mock clock.
func (l *Ledger) Settle(ctx context.Context) error {
	for {
		l.mu.Lock()
		none, settled := l.pending == 0, l.settled
		l.mu.Unlock()
		if none {
			return nil
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}
