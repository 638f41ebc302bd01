package move_test

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
)

// What a simulated operator's program lacks, so that the simulation must find two holders.
const (
	noWait   = "it doesn't wait for the holder"
	noID     = "it takes another move's pause for its own"
	noGuard  = "resume ends a move's pause without a question"
	noLanded = "the second store isn't paused before records are copied"
)

// spoiled are the stores as a program sees them that lacks a rule.
func (w *world) spoiled(from, to store.Ledger) (store.Ledger, store.Ledger) {
	switch w.broken {
	case noWait:
		return &impatient{from}, to
	case noID:
		id := &sameID{}
		return &oneMove{from, id}, &oneMove{to, id}
	case noLanded:
		return from, &notPaused{Ledger: to}
	}
	return from, to
}

// impatient shows nobody's lease.
type impatient struct{ store.Ledger }

func (l *impatient) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := l.Ledger.Tail(ctx, workerType, limit)
	if limit == 1 && len(records) == 1 {
		records[0].WindowStart, records[0].WindowEnd = records[0].WindowStart.Add(-time.Hour), records[0].WindowEnd.Add(-time.Hour)
	}
	return records, stamp, err
}

// sameID is the id that a program gave its move, and oneMove shows all pauses of moves with it.
type sameID struct {
	mu sync.Mutex
	id string
}

type oneMove struct {
	store.Ledger
	*sameID
}

func (l *oneMove) as(r store.Record) store.Record {
	orders, _ := store.ParseOrders(r.Orders)
	for i, o := range orders {
		if role, id := o.Move(); role != "" && l.id != "" {
			r.Metadata = strings.ReplaceAll(r.Metadata, id, l.id)
			orders[i].Target = store.PauseOfMove(role, l.id)
		}
	}
	r.Orders, _ = store.FormatOrders(orders)
	return r
}

func (l *oneMove) Append(ctx context.Context, r store.Record) error {
	l.mu.Lock()
	if o, is := r.Order(); is && l.id == "" {
		_, l.id = o.Move()
	}
	l.mu.Unlock()
	return l.Ledger.Append(ctx, r)
}

func (l *oneMove) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	r, err := l.Ledger.Get(ctx, workerType, seq)
	return l.as(r), err
}

func (l *oneMove) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := l.Ledger.Tail(ctx, workerType, limit)
	for i := range records {
		records[i] = l.as(records[i])
	}
	return records, stamp, err
}

// notPaused lacks the first pause of a move on the second store.
type notPaused struct {
	store.Ledger
	first bool
}

func (l *notPaused) Append(ctx context.Context, r store.Record) error {
	if !l.first {
		l.first = true
		return nil
	}
	return l.Ledger.Append(ctx, r)
}
