package azblob

import (
	"testing"

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

// BenchmarkFigures measures what docs/stores/figures.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	uri := uriOf(azuritepeer.Start(b).Endpoint(), newContainer()+"/jobs")
	documenttest.BenchmarkFigures(b, func() store.Ledger { return ready(b, Options{URI: uri}) })
}
