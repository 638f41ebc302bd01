package redis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// timed runs an operation, and reports how long half and 99 % of its calls took at most.
func timed(b *testing.B, do func() error) {
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

func BenchmarkAppend(b *testing.B) {
	for name, flags := range map[string][]string{"synced": nil, "each second": {"--appendfsync", "everysec"}} {
		b.Run(name, func(b *testing.B) {
			l := open(b, redispeer.Start(b, redispeer.Options{Flags: flags}).URI())
			seq := int64(0)
			timed(b, func() error {
				seq++
				return l.Append(b.Context(), storetest.Grant("job", seq))
			})
		})
	}
}

func BenchmarkTailOfMany(b *testing.B) {
	uri := shared(b)
	l, c := open(b, uri), raw(b, uri)
	text := []any{"ZADD", l.names.ledger("job")}
	for seq := range 100_000 {
		r := storetest.Grant("job", int64(seq+1))
		member, err := storekit.Encode(r)
		if err != nil {
			b.Fatal(err)
		}
		if text = append(text, r.Seq, member); len(text) == 2002 {
			do(b, c, text...)
			text = text[:2]
		}
	}
	timed(b, func() error {
		_, _, err := l.Tail(b.Context(), "job", 2)
		return err
	})
}

// BenchmarkNow shows how well the server's clock is known: to half of the round trip.
func BenchmarkNow(b *testing.B) {
	l := open(b, shared(b))
	timed(b, func() error {
		_, err := l.Now(b.Context())
		return err
	})
}

func BenchmarkTail(b *testing.B) {
	addr, bytes := storetest.Wire(b, strings.TrimSuffix(strings.TrimPrefix(redispeer.Shared(b), "redis://"), "/0"))
	storetest.BenchmarkTail(b, open(b, "redis://"+addr+"/0?unsafeNoPersistence=true&prefix="+prefix()), bytes)
}

// BenchmarkFigures measures what docs/stores.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	uri := redispeer.Start(b, redispeer.Options{}).URI()
	documenttest.BenchmarkFigures(b, func() store.Ledger { return open(b, uri) })
}
