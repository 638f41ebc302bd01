package postgres

import (
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	s := postgrespeer.Start(b, postgrespeer.Options{})
	addr, wire := storetest.Wire(b, s.Addr())
	storetest.BenchmarkTail(b, opened(b, Options{URI: strings.Replace(s.URI(), s.Addr(), addr, 1)}), wire)
}

// BenchmarkOperations reports what most operations take, and what nearly all do, on a server of its own that syncs,
// alone, with a standby that is synchronous, and behind a pooler; and how uncertain the time is after one.
func BenchmarkOperations(b *testing.B) {
	s := postgrespeer.Start(b, postgrespeer.Options{})
	l := initialised(b, Options{URI: s.URI()})
	documenttest.BenchmarkOperations(b, "alone", l)
	pooled := opened(b, Options{URI: postgrespeer.Pooler(b, s.URI(), "transaction")})
	documenttest.BenchmarkOperations(b, "behind a pooler", pooled)
	postgrespeer.Start(b, postgrespeer.Options{Follows: s})
	execute(b, s.URI(), `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	execute(b, s.URI(), `SELECT pg_reload_conf()`)
	documenttest.BenchmarkOperations(b, "with a synchronous standby", l)
}

// BenchmarkFigures measures what docs/stores/figures.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	uri := postgrespeer.Start(b, postgrespeer.Options{}).URI()
	documenttest.BenchmarkFigures(b, func() store.Ledger { return initialised(b, Options{URI: uri}) })
}
