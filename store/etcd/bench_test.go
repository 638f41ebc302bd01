package etcd

import (
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	storetest.BenchmarkTail(b, opened(b, Options{URI: fresh(etcdpeer.Shared(b))}), nil)
}

func BenchmarkLong(b *testing.B) {
	storetest.BenchmarkLong(b, opened(b, Options{URI: fresh(etcdpeer.Shared(b))}))
}

// BenchmarkFigures measures what docs/stores/figures.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	uri := fresh(etcdpeer.Shared(b))
	documenttest.BenchmarkFigures(b, func() store.Ledger { return opened(b, Options{URI: uri}) })
}
