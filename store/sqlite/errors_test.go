package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
)

// It is no reason to look for another file, or to try again.
func TestAMistakenStatementIsNoFaultOfTheFile(t *testing.T) {
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "ledger.db")})
	db := raw(t, l.o.Path)
	for text, says := range map[string]string{
		"SELECT 1 AS table": "syntax error", "SELECT no_such": "no such column: no_such", "SELECT 1 FROM no_such": "no such table: no_such",
		"SELECT no_such(1)": "no such function: no_such", "SELECT (": "incomplete input", "SELECT #": "unrecognized token",
	} {
		_, err := db.ExecContext(t.Context(), text)
		err = l.explain(t.Context(), err)
		documenttest.Says(t, text, err, store.ErrRefused, says, "(1)")
		if !strings.Contains(store.Remedy(err), "a mistake of slotlease") {
			t.Errorf("the remedy of %v is %q, want what to do about a mistake", err, store.Remedy(err))
		}
	}
}
