package sqlite

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestTheScriptOfInitMakesALedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	l := open(t, Options{Path: path})
	wantErr(t, "CheckRights() without a ledger", l.CheckRights(t.Context()), store.ErrMissing)
	wantErr(t, "CheckRights() again: it creates nothing", l.CheckRights(t.Context()), store.ErrMissing)
	if shell, err := exec.LookPath("sqlite3"); err == nil {
		cmd := exec.CommandContext(t.Context(), shell, path)
		cmd.Stdin = strings.NewReader(l.InitScript())
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "rror") {
			t.Fatalf("sqlite3 with the script = %s, %v, want no error", out, err)
		}
	} else {
		execute(t, raw(t, path), l.InitScript())
	}
	must(t, "CheckRights()", l.CheckRights(t.Context()))
	must(t, "Init() of what is there", l.Init(t.Context()))
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	must(t, "Attend()", l.Attend(t.Context(), nil))
	must(t, "CheckRights() of a file in use", l.CheckRights(t.Context()))
	wantErr(t, "CheckRights() for reading", open(t, Options{Path: path, ReadOnly: true}).CheckRights(t.Context()), store.ErrDenied)
}

func TestTheRemedyOfAMissingLedgerIsWhatMakesIt(t *testing.T) {
	dir := t.TempDir()
	err := open(t, Options{Path: filepath.Join(dir, "leases.db")}).CheckRights(t.Context())
	if got := store.Remedy(err); !strings.HasPrefix(got, "call the ledger's Init") {
		t.Errorf("Remedy(%v) = %q, want to call Init", err, got)
	}
	gone := filepath.Join(dir, "none")
	_, err = Open(t.Context(), Options{Path: filepath.Join(gone, "leases.db")})
	if got, want := store.Remedy(err), "create the directory "+gone+" first"; got != want {
		t.Errorf("Remedy(%v) = %q, want %q", err, got, want)
	}
}
