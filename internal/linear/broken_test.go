package linear_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// broken is a ledger that does one thing wrong now and then.
type broken struct {
	store.Ledger
	often
	append func(l store.Ledger, ctx context.Context, r store.Record, wrong func() bool) error
	get    func(l store.Ledger, ctx context.Context, workerType string, seq int64, wrong func() bool) (store.Record, error)
	tail   func(records []store.Record, wrong func() bool) []store.Record
	trim   func(l store.Ledger, ctx context.Context, workerType string, before int64, wrong func() bool) (int, error)
}

// often says yes every tenth time that it could.
type often struct{ n *atomic.Int64 }

func (o often) now() bool { return o.n.Add(1)%10 == 0 }

func (b broken) Append(ctx context.Context, r store.Record) error {
	if b.append == nil {
		return b.Ledger.Append(ctx, r)
	}
	return b.append(b.Ledger, ctx, r, b.now)
}

func (b broken) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if b.get == nil {
		return b.Ledger.Get(ctx, workerType, seq)
	}
	return b.get(b.Ledger, ctx, workerType, seq, b.now)
}

func (b broken) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := b.Ledger.Tail(ctx, workerType, limit)
	if err == nil && b.tail != nil {
		records = b.tail(records, b.now)
	}
	return records, stamp, err
}

func (b broken) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	if b.trim == nil {
		return b.Ledger.Trim(ctx, workerType, before)
	}
	return b.trim(b.Ledger, ctx, workerType, before, b.now)
}

// deletes is a ledger in memory from which records can be deleted, which memory's
// own can't.
type deletes struct {
	store.Ledger
	mu   sync.Mutex
	gone map[string]bool
}

func (d *deletes) delete(workerType string, seq int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone[store.Key(workerType, seq)] = true
}

func (d *deletes) is(workerType string, seq int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone[store.Key(workerType, seq)]
}

func (d *deletes) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if d.is(workerType, seq) {
		return store.Record{}, store.ErrNotFound
	}
	return d.Ledger.Get(ctx, workerType, seq)
}

func (d *deletes) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := d.Ledger.Tail(ctx, workerType, store.TrimBatch)
	var kept []store.Record
	for _, r := range records {
		if !d.is(workerType, r.Seq) && len(kept) < limit {
			kept = append(kept, r)
		}
	}
	return kept, stamp, err
}

func TestBrokenLedgersAreFoundIllegal(t *testing.T) {
	for name, c := range map[string]struct {
		plan   workload.Plan
		broken broken
	}{
		"a key has two winners": {workload.Round(0, 50, 80), broken{
			append: func(l store.Ledger, ctx context.Context, r store.Record, wrong func() bool) error {
				err := l.Append(ctx, r)
				if errors.Is(err, store.ErrConflict) && wrong() {
					return nil
				}
				return err
			},
		}},
		"an append overwrites": {workload.Round(0, 50, 80), broken{
			append: func(l store.Ledger, ctx context.Context, r store.Record, wrong func() bool) error {
				err := l.Append(ctx, r)
				if errors.Is(err, store.ErrConflict) && wrong() {
					l.(*deletes).Ledger.(*memory.Ledger).Put(r)
				}
				return err
			},
		}},
		"an acknowledged record is not there": {workload.Round(0, 50, 80), broken{
			append: func(l store.Ledger, ctx context.Context, r store.Record, wrong func() bool) error {
				if wrong() {
					return nil
				}
				return l.Append(ctx, r)
			},
		}},
		"an acknowledged record is lost later": {workload.Round(2, 50, 80), broken{
			append: func(l store.Ledger, ctx context.Context, r store.Record, wrong func() bool) error {
				err := l.Append(ctx, r)
				if wrong() {
					l.(*deletes).delete(r.WorkerType, r.Seq-1)
				}
				return err
			},
		}},
		"a conflict with nobody": {workload.Round(0, 50, 80), broken{
			append: func(l store.Ledger, ctx context.Context, r store.Record, wrong func() bool) error {
				if wrong() {
					return store.ErrConflict
				}
				return l.Append(ctx, r)
			},
		}},
		"a tail is out of order": {workload.Round(2, 50, 80), broken{
			tail: func(records []store.Record, wrong func() bool) []store.Record {
				if len(records) > 1 && wrong() {
					records[0], records[1] = records[1], records[0]
				}
				return records
			},
		}},
		"a tail lacks one in the middle": {workload.Round(2, 50, 80), broken{
			tail: func(records []store.Record, wrong func() bool) []store.Record {
				if len(records) > 2 && wrong() {
					return append(records[:1:1], records[2:]...)
				}
				return records
			},
		}},
		"a get returns another's record": {workload.Round(2, 50, 80), broken{
			get: func(l store.Ledger, ctx context.Context, workerType string, seq int64, wrong func() bool) (store.Record, error) {
				r, err := l.Get(ctx, workerType, seq)
				if other, otherErr := l.Get(ctx, workerType, seq-1); otherErr == nil && wrong() {
					other.Seq = seq
					return other, nil
				}
				return r, err
			},
		}},
		"a get returns a record with another token": {workload.Round(0, 50, 80), broken{
			get: func(l store.Ledger, ctx context.Context, workerType string, seq int64, wrong func() bool) (store.Record, error) {
				r, err := l.Get(ctx, workerType, seq)
				if wrong() {
					r.Token++
				}
				return r, err
			},
		}},
		"a trim deletes the head": {workload.Round(1, 50, 200), broken{
			trim: func(l store.Ledger, ctx context.Context, workerType string, before int64, wrong func() bool) (int, error) {
				head, _, err := l.Tail(ctx, workerType, 1)
				n, trimErr := l.Trim(ctx, workerType, before)
				if err == nil && len(head) > 0 && head[0].Seq < before {
					l.(*deletes).delete(workerType, head[0].Seq)
					n++
				}
				return n, trimErr
			},
		}},
		"a trim deletes one too many": {workload.Round(3, 50, 200), broken{
			trim: func(l store.Ledger, ctx context.Context, workerType string, before int64, _ func() bool) (int, error) {
				return l.Trim(ctx, workerType, before+1)
			},
		}},
		"a trim brings a record back": {workload.Round(3, 50, 200), broken{
			trim: func(l store.Ledger, ctx context.Context, workerType string, before int64, _ func() bool) (int, error) {
				oldest, _, _ := l.Tail(ctx, workerType, store.TrimBatch)
				n, err := l.Trim(ctx, workerType, before)
				if n > 1 {
					runtime.Gosched()
					for _, r := range oldest {
						l.(*deletes).Ledger.(*memory.Ledger).Put(r)
					}
				}
				return n, err
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			// Not every round meets the fault where it shows.
			for round := range 50 {
				c.broken.Ledger = &deletes{Ledger: memory.New(memory.Options{}), gone: map[string]bool{}}
				c.broken.often = often{new(atomic.Int64)}
				h := compete(t, c.plan, uint64(round), func(string) store.Ledger { return jostled{c.broken} }, func() {})
				result, err := h.Check(patience)
				if err == nil {
					continue
				}
				if !errors.Is(err, linear.ErrIllegal) || len(result.Violations) == 0 {
					t.Fatalf("Check() = %+v, %v, want ErrIllegal", result, err)
				}
				if !strings.Contains(err.Error(), "no explanation for: ") {
					t.Errorf("Check() = %v, want it to say what has no explanation", err)
				}
				t.Logf("round %d: %v", round, err)
				draw(t, result.Violations[0], filepath.Join(t.ArtifactDir(), "violation.html"))
				return
			}
			t.Error("50 rounds are linearizable, want ErrIllegal")
		})
	}
}
