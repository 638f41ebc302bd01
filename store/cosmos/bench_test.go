package cosmos

import (
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	peer := cosmospeer.Start(b, cosmospeer.Options{})
	addr, wire := storetest.Wire(b, peer.Addr())
	storetest.BenchmarkTail(b, opened(b, Options{URI: "cosmos://" + addr + "/?insecureHTTP=true"}), wire)
}

// BenchmarkFigures measures what docs/stores/figures.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	peer := cosmospeer.Start(b, cosmospeer.Options{})
	uri := "cosmos://" + peer.Addr() + "/?insecureHTTP=true"
	documenttest.BenchmarkFigures(b, func() store.Ledger { return ready(b, Options{URI: uri}) })
}
