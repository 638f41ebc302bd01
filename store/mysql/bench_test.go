package mysql

import (
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func BenchmarkTail(b *testing.B) {
	s := mysqlpeer.Start(b, mysqlpeer.Options{})
	mysqlpeer.Exec(b, s.DSN(), "CREATE DATABASE jobs")
	addr, wire := storetest.Wire(b, s.Addr())
	storetest.BenchmarkTail(b, opened(b, Options{URI: strings.Replace(uriOf(b, s.DSN()+"jobs"), s.Addr(), addr, 1)}), wire)
}

// BenchmarkOperations reports what most operations take, and what nearly all do, on a server of its own that syncs:
// alone, and with a binary log that it syncs, too.
func BenchmarkOperations(b *testing.B) {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"alone", nil},
		{"with a binary log", []string{"--log-bin", "--sync-binlog=1"}},
	} {
		s := mysqlpeer.Start(b, mysqlpeer.Options{Flags: c.flags})
		mysqlpeer.Exec(b, s.DSN(), "CREATE DATABASE jobs")
		l := initialised(b, Options{URI: uriOf(b, s.DSN()+"jobs")})
		documenttest.BenchmarkOperations(b, c.name, l)
	}
}

// BenchmarkFigures measures what docs/stores/figures.md says of the store: run it with -benchtime 5x.
func BenchmarkFigures(b *testing.B) {
	s := mysqlpeer.Start(b, mysqlpeer.Options{Flags: []string{"--log-bin", "--sync-binlog=1"}})
	mysqlpeer.Exec(b, s.DSN(), "CREATE DATABASE jobs")
	documenttest.BenchmarkFigures(b, func() store.Ledger { return initialised(b, Options{URI: uriOf(b, s.DSN()+"jobs")}) })
}
