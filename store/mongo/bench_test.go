package mongo

import (
	"testing"

	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	peer := mongopeer.Start(b)
	addr, wire := storetest.Wire(b, peer.Addr())
	l, err := Open(b.Context(), Options{URI: "mongodb://" + addr + "/"})
	must(b, "Open()", err)
	b.Cleanup(func() { _ = l.Close(b.Context()) })
	storetest.BenchmarkTail(b, l, wire)
}
