package redis

import (
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	addr, bytes := storetest.Wire(b, strings.TrimSuffix(strings.TrimPrefix(redispeer.Shared(b), "redis://"), "/0"))
	storetest.BenchmarkTail(b, open(b, "redis://"+addr+"/0?unsafeNoPersistence=true&prefix="+prefix()), bytes)
}

// BenchmarkFigures measures what docs/stores/figures.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	uri := redispeer.Start(b, redispeer.Options{}).URI()
	documenttest.BenchmarkFigures(b, func() store.Ledger { return open(b, uri) })
}
