package upkeep

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// ledger is a SQLite ledger with some records.
func ledger(t *testing.T, records ...store.Record) (storeuri.Target, store.Ledger) {
	t.Helper()
	target, err := storeuri.Parse("sqlite:"+filepath.Join(t.TempDir(), "leases.db"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	l, err := target.Open(t.Context(), false)
	if err == nil {
		err = l.Init(t.Context())
	}
	for _, r := range records {
		if err == nil {
			err = l.Append(t.Context(), r)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return target, l
}

// wantError demands an exit code, and what an error says and doesn't.
func wantError(t *testing.T, what string, err error, code int, says []string, not ...string) {
	t.Helper()
	e, ok := errors.AsType[*exit.Error](err)
	if !ok || e.Code != code {
		t.Errorf("%s = %v, want exit code %d", what, err, code)
		return
	}
	text := e.Error() + "\ntry: " + e.Try
	for _, s := range says {
		if !strings.Contains(text, s) {
			t.Errorf("%s = %q, want it to say %q", what, text, s)
		}
	}
	for _, s := range not {
		if strings.Contains(text, s) {
			t.Errorf("%s = %q, want it not to say %q", what, text, s)
		}
	}
}

var errFull = errors.New("no space left on device")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestABackupThatFailsSaysWhatIsWrongWithTheCopy(t *testing.T) {
	target, _ := ledger(t, recordtest.Grant(1, 0, "worker-a"))
	to := filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if err := os.WriteFile(to+suffix, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		wantError(t, "Backup() beside "+suffix, Backup(t.Context(), target, to, full{}), exit.Failure, []string{to + suffix + " exists", "remove it, or choose another name"})
		wantError(t, "Backup() to a name with "+suffix, Backup(t.Context(), target, target.Path()+suffix, full{}), exit.Usage, []string{"--to " + target.Path() + suffix, "choose one"})
		if err := os.Remove(to + suffix); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	wantError(t, "notCopied() of a late one", notCopied(target, to, ctx.Err()), exit.Unreachable, []string{"no copy was made", "a longer --timeout"})
	wantError(t, "Backup() to a full output", Backup(t.Context(), target, to, full{}), exit.Failure, []string{"the copy " + to + " was made", errFull.Error()})
	if _, err := os.Stat(to); err != nil {
		t.Errorf("the copy that was made: %v", err)
	}
}
