package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	s := postgrespeer.Start(b, postgrespeer.Options{})
	addr, wire := storetest.Wire(b, s.Addr())
	storetest.BenchmarkTail(b, opened(b, Options{URI: strings.Replace(s.URI(), s.Addr(), addr, 1)}), wire)
}

// BenchmarkOperations reports what most operations take, and what nearly all do, on a server of its own that syncs,
// alone, with a standby that is synchronous, and behind a pooler; and how uncertain the time is after one.
func BenchmarkOperations(b *testing.B) {
	s := postgrespeer.Start(b, postgrespeer.Options{})
	l := initialised(b, Options{URI: s.URI()})
	operations(b, "alone", l)
	pooled := opened(b, Options{URI: postgrespeer.Pooler(b, s.URI(), "transaction")})
	operations(b, "behind a pooler", pooled)
	postgrespeer.Start(b, postgrespeer.Options{Follows: s})
	execute(b, s.URI(), `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	execute(b, s.URI(), `SELECT pg_reload_conf()`)
	operations(b, "with a synchronous standby", l)
}

func operations(b *testing.B, name string, l store.Ledger) {
	b.Helper()
	workerType := "bench-" + strings.ReplaceAll(name, " ", "-")
	seq := int64(0)
	for what, call := range map[string]func(ctx context.Context) error{
		"append": func(ctx context.Context) error { seq++; return l.Append(ctx, storetest.Grant(workerType, seq)) },
		"tail":   func(ctx context.Context) error { _, _, err := l.Tail(ctx, workerType, 2); return err },
		"now":    func(ctx context.Context) error { _, err := l.Now(ctx); return err },
	} {
		b.Run(name+"/"+what, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				must(b, what, call(b.Context()))
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// BenchmarkFigures measures what docs/stores.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	uri := postgrespeer.Start(b, postgrespeer.Options{}).URI()
	documenttest.BenchmarkFigures(b, func() store.Ledger { return initialised(b, Options{URI: uri}) })
}
