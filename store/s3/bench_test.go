package s3

import (
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/s3peer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	peer := s3peer.Start(b)
	addr, wire := storetest.Wire(b, peer.Addr())
	storetest.BenchmarkTail(b, opened(b, Options{URI: uriOf("http://"+addr, newBucket())}), wire)
}

// BenchmarkFigures measures what docs/stores/figures.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	uri := uriOf(s3peer.Start(b).Endpoint(), newBucket()+"/jobs")
	documenttest.BenchmarkFigures(b, func() store.Ledger { return ready(b, Options{URI: uri}) })
}
