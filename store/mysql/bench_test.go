package mysql

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	s := mysqlpeer.Start(b, mysqlpeer.Options{})
	mysqlpeer.Exec(b, s.DSN(), "CREATE DATABASE jobs")
	addr, wire := storetest.Wire(b, s.Addr())
	storetest.BenchmarkTail(b, opened(b, Options{URI: strings.Replace(uriOf(b, s.DSN()+"jobs"), s.Addr(), addr, 1)}), wire)
}

// BenchmarkOperations reports what most operations take, and what nearly all do, on a server of its own that syncs:
// alone, without RETURNING as on MySQL, and with a binary log that it syncs, too.
func BenchmarkOperations(b *testing.B) {
	for _, c := range []struct {
		name    string
		flags   []string
		returns bool
	}{
		{"alone", nil, true},
		{"without returning", nil, false},
		{"with a binary log", []string{"--log-bin", "--sync-binlog=1"}, true},
	} {
		s := mysqlpeer.Start(b, mysqlpeer.Options{Flags: c.flags})
		mysqlpeer.Exec(b, s.DSN(), "CREATE DATABASE jobs")
		l := initialised(b, Options{URI: uriOf(b, s.DSN()+"jobs")})
		l.plain = !c.returns
		operations(b, c.name, l)
	}
}

func operations(b *testing.B, name string, l store.Ledger) {
	b.Helper()
	seq := int64(0)
	for _, o := range []struct {
		what string
		call func(ctx context.Context) error
	}{
		{"append", func(ctx context.Context) error { seq++; return l.Append(ctx, storetest.Grant("bench", seq)) }},
		{"tail", func(ctx context.Context) error { _, _, err := l.Tail(ctx, "bench", 2); return err }},
		{"now", func(ctx context.Context) error { _, err := l.Now(ctx); return err }},
	} {
		b.Run(name+"/"+o.what, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				must(b, o.what, o.call(b.Context()))
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// BenchmarkLargeLedger reads a ledger of 100,000 records.
func BenchmarkLargeLedger(b *testing.B) {
	s := mysqlpeer.Start(b, mysqlpeer.Options{Flags: []string{"--innodb-flush-log-at-trx-commit=0"}})
	mysqlpeer.Exec(b, s.DSN(), "CREATE DATABASE jobs")
	dsn := s.DSN() + "jobs"
	l := initialised(b, Options{URI: uriOf(b, dsn)})
	must(b, "Append()", l.Append(b.Context(), storetest.Grant("job", 1)))
	execute(b, dsn, `INSERT INTO worker_leases SELECT worker_type, seq_2_to_100000.seq, document FROM worker_leases, seq_2_to_100000`)
	for name, call := range map[string]func() error{
		"WorkerTypes": func() error { _, err := l.WorkerTypes(b.Context()); return err },
		"Tail":        func() error { _, _, err := l.Tail(b.Context(), "job", 16); return err },
		"Page":        func() error { _, err := l.Page(b.Context(), "job", 50_000, 1000); return err },
		"Examine":     func() error { _, err := l.Examine(b.Context()); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must(b, name, call())
			}
		})
	}
}

// BenchmarkFigures measures what docs/stores.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	s := mysqlpeer.Start(b, mysqlpeer.Options{Flags: []string{"--log-bin", "--sync-binlog=1"}})
	mysqlpeer.Exec(b, s.DSN(), "CREATE DATABASE jobs")
	documenttest.BenchmarkFigures(b, func() store.Ledger { return initialised(b, Options{URI: uriOf(b, s.DSN()+"jobs")}) })
}
