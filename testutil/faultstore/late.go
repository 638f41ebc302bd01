package faultstore

import (
	"context"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
)

// landLater appends a record to the inner ledger after d. It sets the timer before it
// returns, so that a mock clock that is moved afterwards reaches it.
func (l *Ledger) landLater(r store.Record, d time.Duration) error {
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
		if err := l.inner.Append(l.ctx, r); err != nil {
			l.strike(KindMissed)
			return
		}
		l.history.landed(r.WorkerType, r.Seq, l.clock.Now())
		l.strike(KindLanded)
	})
	return nil
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

// History remembers when records landed. Ledgers of one store may share it if they
// share a clock. It is safe for concurrent use.
type History struct {
	mu    sync.Mutex
	types map[string][]landing
}

type landing struct {
	seq int64
	at  time.Time
}

// NewHistory returns an empty history.
func NewHistory() *History { return &History{types: map[string][]landing{}} }

func (h *History) landed(workerType string, seq int64, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.types[workerType] = append(h.types[workerType], landing{seq, at})
}

// younger is the set of Seqs that landed less than d before now.
func (h *History) younger(workerType string, now time.Time, d time.Duration) map[int64]bool {
	if d <= 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	young := map[int64]bool{}
	for _, l := range h.types[workerType] {
		if now.Sub(l.at) < d {
			young[l.seq] = true
		}
	}
	return young
}
