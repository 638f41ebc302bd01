package upkeep

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/testutil/clocks"
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
		wantError(t, "Backup() beside "+suffix, Backup(t.Context(), target, to, full{}), exit.Failure, []string{to + suffix + " exists", "try: another file for --to, or remove " + to + suffix})
		wantError(t, "Backup() to a name with "+suffix, Backup(t.Context(), target, target.Path()+suffix, full{}), exit.Usage, []string{"--to " + target.Path() + suffix, "choose one"})
		if err := os.Remove(to + suffix); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	wantError(t, "notCopied() of a late one", notCopied(target, to, ctx.Err()), exit.Unreachable, []string{"perhaps the copy was made", "if " + to + " is there, it is whole", "a longer --timeout"})
	wantError(t, "Backup() to a full output", Backup(t.Context(), target, to, full{}), exit.Failure, []string{"the copy " + to + " was made", errFull.Error()})
	if _, err := os.Stat(to); err != nil {
		t.Errorf("the copy that was made: %v", err)
	}
}

func TestReanchorOfARightClockChangesNothing(t *testing.T) {
	target, _ := ledger(t)
	ask := func(string) (string, error) { t.Error("it asks"); return "n", nil }
	var plan, result strings.Builder
	if err := Reanchor(t.Context(), target, Options{Ask: ask, Timeout: time.Minute}, &plan, &result); err != nil || plan.String() != "" || !strings.Contains(result.String(), "there is nothing to do, and nothing was changed") {
		t.Errorf("Reanchor() = %v, and shows %q and %q", err, plan.String(), result.String())
	}
	wantError(t, "Reanchor() to a full output", Reanchor(t.Context(), target, Options{Ask: ask, Timeout: time.Minute}, &plan, full{}), exit.Failure, []string{"nothing to do", errFull.Error()})
}

func TestReanchorThatIsLateOrUntoldSaysWhatWasDone(t *testing.T) {
	target, l := wrongLedger(t, -3*time.Hour)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantError(t, "Reanchor() that is late", Reanchor(t.Context(), target, Options{Yes: true, Timeout: 1}, io.Discard, io.Discard), exit.Unreachable, []string{"nothing was done", "a longer --timeout"})
	var plan strings.Builder
	wantError(t, "Reanchor() to a full output", Reanchor(t.Context(), target, Options{Yes: true, Timeout: time.Minute}, &plan, full{}), exit.Failure, []string{"store time was ", " now, but that can't be told", errFull.Error()})
	if !strings.Contains(plan.String(), " behind the machine's clock") {
		t.Errorf("the plan is %q", plan.String())
	}
}

// wrongLedger is one that was first used while the machine's clock was wrong.
func wrongLedger(t *testing.T, by time.Duration, records ...store.Record) (storeuri.Target, store.Ledger) {
	t.Helper()
	target, l := ledger(t)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := sqlite.Open(t.Context(), sqlite.Options{Path: target.Path(), Clock: clocks.Skewed(clock.New(), by)})
	if err == nil {
		_, err = l.Now(t.Context())
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

func TestThePlanSaysWhatWorkersDoAboutRecordsThatAreAhead(t *testing.T) {
	at := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	ahead, implausible := recordtest.Grant(1, 0, "worker-a"), recordtest.Grant(7, 0, "worker-a")
	ahead.WindowEnd = at.Add(time.Minute)
	implausible.WindowStart, implausible.WindowEnd = at.Add(24*time.Hour), at.Add(25*time.Hour)
	got := text(sqlite.Anchor{StoreTime: at.Add(24 * time.Hour), WallTime: at, Ahead: []store.Record{ahead}, Implausible: []store.Record{implausible}})
	for _, want := range []string{
		`risk: nothing of "export" is claimed before 2026-03-02T12:01:00.000Z, because of record 1`,
		`risk: record 7 of "export" is too far ahead of the machine's clock (it is for 2026-03-03T12:00:00.000Z to 2026-03-03T13:00:00.000Z)`,
		"until they have superseded it, which takes them some minutes",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the plan is %q, want %q", got, want)
		}
	}
	if strings.Contains(got, "before 2026-03-03") {
		t.Errorf("the plan is %q, want nobody to wait until the next day", got)
	}
}

func TestThePlanOfALedgerWhoseTimeIsUncertainAloneSaysSo(t *testing.T) {
	at := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	for apart, want := range map[time.Duration]string{0: "but it is uncertain", -time.Second: "but it is uncertain", 1001 * time.Millisecond: "1.001s behind the machine's clock", -time.Hour: "1h0m0s ahead of the machine's clock"} {
		if got := text(sqlite.Anchor{StoreTime: at, WallTime: at.Add(apart)}); !strings.Contains(got, want) {
			t.Errorf("the plan of a clock that is %v ahead is %q, want %q", apart, got, want)
		}
	}
}

// The workers of a container go by its boot id, leasectl by that of the machine. Both may have run
// for seconds only, as in a test machine.
func TestReanchorFromOutsideAContainerMendsItsTime(t *testing.T) {
	target, l := wrongLedger(t, 3*time.Hour)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", target.Path())
	if err == nil {
		_, err = db.ExecContext(t.Context(), `UPDATE Boot SET id = 'container'`)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	var plan, result strings.Builder
	if err := Reanchor(t.Context(), target, Options{Yes: true, Timeout: time.Minute}, &plan, &result); err != nil || !strings.Contains(plan.String(), "ahead of the machine's clock") {
		t.Errorf("Reanchor() = %v, and shows %q and %q, want it to show that store time is ahead", err, plan.String(), result.String())
	}
	plan.Reset()
	result.Reset()
	if err := Reanchor(t.Context(), target, Options{Yes: true, Timeout: time.Minute}, &plan, &result); err != nil || !strings.Contains(result.String(), "nothing to do") {
		t.Errorf("Reanchor() again = %v, and shows %q and %q", err, plan.String(), result.String())
	}
}
