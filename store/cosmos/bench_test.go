package cosmos

import (
	"testing"

	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	peer := cosmospeer.Start(b, cosmospeer.Options{})
	addr, wire := storetest.Wire(b, peer.Addr())
	storetest.BenchmarkTail(b, opened(b, Options{URI: "cosmos://" + addr + "/?insecureHTTP=true"}), wire)
}
