package kubernetes

import (
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/kubepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	storetest.BenchmarkTail(b, fresh(b, kubepeer.Shared(b)).open(b, "worker"), nil)
}

func BenchmarkLong(b *testing.B) {
	storetest.BenchmarkLong(b, fresh(b, kubepeer.Shared(b)).open(b, "worker"))
}

// BenchmarkAppend measures appends one after the other, each of which is on disk when it returns.
func BenchmarkAppend(b *testing.B) {
	l := fresh(b, kubepeer.Shared(b)).open(b, "worker")
	seq := int64(0)
	spread(b, func() error { seq++; return l.Append(b.Context(), storetest.Grant("bench", seq)) })
}

// BenchmarkHead measures how long it takes to read the newest record.
func BenchmarkHead(b *testing.B) {
	l := fresh(b, kubepeer.Shared(b)).open(b, "worker")
	for seq := range int64(100) {
		if err := l.Append(b.Context(), storetest.Grant("bench", seq+1)); err != nil {
			b.Fatal(err)
		}
	}
	spread(b, func() error { _, _, err := l.Tail(b.Context(), "bench", 1); return err })
}

// spread measures how long something takes, at best and at worst.
func spread(b *testing.B, do func() error) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func BenchmarkNow(b *testing.B) {
	l := fresh(b, kubepeer.Shared(b)).open(b, "worker")
	for b.Loop() {
		if _, err := l.Now(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFigures measures what docs/stores.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	s := fresh(b, kubepeer.Shared(b))
	documenttest.BenchmarkFigures(b, func() store.Ledger { return s.open(b, "worker") })
}
