package azblob

import (
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	peer := azuritepeer.Start(b)
	addr, wire := storetest.Wire(b, peer.Addr())
	storetest.BenchmarkTail(b, opened(b, Options{URI: uriOf("http://"+addr, newContainer())}), wire)
}

// BenchmarkLatency measures an append, and a look at the head, one after the other.
func BenchmarkLatency(b *testing.B) {
	l := ready(b, Options{URI: uriOf(azuritepeer.Start(b).Endpoint(), newContainer()+"/jobs")})
	var appends, tails []time.Duration
	for seq := int64(1); b.Loop(); seq++ {
		began := time.Now()
		must(b, "Append()", l.Append(b.Context(), storetest.Grant("bench", seq)))
		looked := time.Now()
		_, _, err := l.Tail(b.Context(), "bench", 1)
		must(b, "Tail()", err)
		appends, tails = append(appends, looked.Sub(began)), append(tails, time.Since(looked))
	}
	for name, all := range map[string][]time.Duration{"append": appends, "tail": tails} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, name+"-p99-ms")
	}
}

// BenchmarkFigures measures what docs/stores.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	uri := uriOf(azuritepeer.Start(b).Endpoint(), newContainer()+"/jobs")
	documenttest.BenchmarkFigures(b, func() store.Ledger { return ready(b, Options{URI: uri}) })
}
