package mongo

import (
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
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

// BenchmarkFigures measures what docs/stores/figures.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	uri := mongopeer.Start(b).URI()
	documenttest.BenchmarkFigures(b, func() store.Ledger {
		l := open(b, Options{URI: uri})
		documenttest.Must(b, "Init()", l.Init(b.Context()))
		return l
	})
}
