package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// prepared returns statements on a connection with the settings of a ledger, beside which there is nothing.
func prepared(b *testing.B, path string, texts ...string) (all []*sql.Stmt) {
	b.Helper()
	db, err := connect(path, "mode=rw&_synchronous=FULL")
	must(b, "connect()", err)
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	for _, text := range texts {
		s, err := db.PrepareContext(b.Context(), text)
		must(b, text, err)
		all = append(all, s)
	}
	return all
}

// compare measures two acts in turns, so that what else the machine does bears on both, and reports how many
// times as long the first takes. It takes the median of each: a disk is now and then slow.
func compare(b *testing.B, ours, plain func(n int64) error) {
	b.Helper()
	var took [2][]time.Duration
	for n := int64(1); b.Loop(); n++ {
		for i, act := range []func(n int64) error{ours, plain} {
			began := time.Now()
			if err := act(n); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	one, other := median(took[0]), median(took[1])
	b.ReportMetric(float64(one.Nanoseconds())/1e3, "µs/ours")
	b.ReportMetric(float64(other.Nanoseconds())/1e3, "µs/plain")
	b.ReportMetric(float64(one)/float64(other), "times")
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkLoneAppend compares an append with the prepared INSERT of the same row, in a transaction of its own.
func BenchmarkLoneAppend(b *testing.B) {
	path := filepath.Join(b.TempDir(), "ledger.db")
	l := open(b, Options{Path: path})
	must(b, "Append()", l.Append(b.Context(), storetest.Grant("job", 1_000_000)))
	must(b, "Now()", documenttest.ErrorOf(l.Now(b.Context())))
	all := prepared(b, path, insertGuarded)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	compare(b,
		func(n int64) error { return l.Append(ctx, storetest.Grant("job", n)) },
		func(n int64) error {
			_, err := all[0].ExecContext(ctx, append(rowOf(b, storetest.Grant("other", n)), below(nil)...)...)
			return err
		})
}

// BenchmarkLoneTail compares a tail with the prepared SELECTs that find the same: the newest record, whether a key
// can't be followed, and the offsets of store time.
func BenchmarkLoneTail(b *testing.B) {
	path := filepath.Join(b.TempDir(), "ledger.db")
	l := open(b, Options{Path: path})
	for seq := range int64(200) {
		must(b, "Append()", l.Append(b.Context(), storetest.Grant("job", seq+1)))
	}
	must(b, "Now()", documenttest.ErrorOf(l.Now(b.Context())))
	newest := queryFor(`workerType = ?1 AND seq BETWEEN 1 AND ?2 ORDER BY seq DESC LIMIT ?3 + 0`)
	all := prepared(b, path, selectUnreachable, newest, selectLines)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	compare(b,
		func(int64) error {
			got, _, err := l.Tail(ctx, "job", 1)
			if err == nil && len(got) != 1 {
				err = errors.New("no record")
			}
			return err
		},
		func(int64) error {
			for i, args := range [][]any{{"job", int64(store.MaxSeq)}, {"job", int64(store.MaxSeq), 1}, nil} {
				r, err := all[i].QueryContext(ctx, args...)
				if err != nil {
					return err
				}
				for r.Next() {
					names, err := r.Columns()
					if err != nil {
						return err
					}
					row := make([]any, len(names))
					for i := range row {
						row[i] = new(any)
					}
					if err := r.Scan(row...); err != nil {
						return err
					}
				}
				if err := r.Close(); err != nil {
					return err
				}
			}
			return nil
		})
}

// BenchmarkBoundary is what 1,000 workers of one process append at one boundary.
func BenchmarkBoundary(b *testing.B) {
	l := open(b, Options{Path: filepath.Join(b.TempDir(), "ledger.db")})
	must(b, "Init()", l.Init(b.Context()))
	var took []time.Duration
	for seq := int64(1); b.Loop(); seq++ {
		var wg sync.WaitGroup
		began := time.Now()
		for i := range 1000 {
			wg.Go(func() {
				if err := l.Append(b.Context(), storetest.Grant(fmt.Sprint("job", i), seq)); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		took = append(took, time.Since(began))
	}
	b.ReportMetric(float64(median(took).Microseconds())/1e3, "ms/1000")
}
