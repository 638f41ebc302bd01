//go:build sqlserver

package sqlserver

import (
	"context"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/internal/documenttest"
)

var must = documenttest.Must

// patience bounds operations that must succeed, on a machine that is busy.
const patience = time.Minute

func within(t testing.TB) context.Context {
	t.Helper()
	return documenttest.Within(t, patience)
}

// opened opens a ledger that is closed with the test.
func opened(t testing.TB, o Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%s) = %v, want a ledger", Redact(o.URI), err)
	}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return l
}
