package kubernetes

import (
	"testing"

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

// BenchmarkFigures measures what docs/stores/figures.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	s := fresh(b, kubepeer.Shared(b))
	documenttest.BenchmarkFigures(b, func() store.Ledger { return s.open(b, "worker") })
}
