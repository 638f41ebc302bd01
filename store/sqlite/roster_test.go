package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// plantPresence writes a row of Roster as another program may.
func plantPresence(t testing.TB, path, workerType, id string, fields map[string]any) {
	t.Helper()
	document := maps.Clone(fields)
	document["workerType"], document["id"] = workerType, id
	for name, v := range document {
		if at, ok := v.(time.Time); ok {
			document[name] = at.Format(time.RFC3339Nano) // MarshalJSON refuses the year 10000.
		}
	}
	text, err := json.Marshal(document)
	must(t, "Marshal()", err)
	plantText(t, path, workerType, id, string(text))
}

// plantText writes a row of Roster with any text.
func plantText(t testing.TB, path, workerType, id string, text any) {
	t.Helper()
	db := raw(t, path)
	must(t, "INSERT", documenttest.ErrorOf(db.ExecContext(t.Context(), `INSERT OR REPLACE INTO Roster VALUES (?, ?, ?)`, workerType, id, text)))
	must(t, "Close()", db.Close())
}

// rosterOf lists a roster, which must be readable.
func rosterOf(t *testing.T, l *Ledger) (ids []string) {
	t.Helper()
	all, err := l.Presences(t.Context(), "")
	must(t, "Presences()", err)
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids
}

// withoutRoster is the path of a ledger as versions before the roster made it, with a record.
func withoutRoster(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := raw(t, path)
	execute(t, db, slices.DeleteFunc(slices.Clone(creation), func(s string) bool { return s == createRoster })...)
	must(t, "Close()", db.Close())
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	must(t, "Close()", l.Close(t.Context()))
	return path
}

func TestAFileWithoutARosterHasOneFromTheFirstAttend(t *testing.T) {
	path := withoutRoster(t)
	l, other := open(t, Options{Path: path}), open(t, Options{Path: path})
	for at, h := range []*Ledger{l, other} {
		must(t, "Append()", h.Append(t.Context(), storetest.Grant("job", int64(10+at))))
	}
	must(t, "Leave()", l.Leave(t.Context(), "job", []string{"a"}))
	reader := open(t, Options{Path: path, ReadOnly: true})
	for _, h := range []*Ledger{l, reader} {
		documenttest.Equal(t, "Presences() before the first Attend", len(rosterOf(t, h)), 0)
	}
	must(t, "Attend()", l.Attend(t.Context(), []store.Presence{storetest.Presence("job", "a")}))
	must(t, "Attend() by another", other.Attend(t.Context(), []store.Presence{storetest.Presence("job", "b")}))
	for _, h := range []*Ledger{l, other, reader, open(t, Options{Path: path})} {
		if got := rosterOf(t, h); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("Presences() = %q, want a and b", got)
		}
	}
	// The schema has changed under them.
	for at, h := range []*Ledger{l, other} {
		must(t, "Append() afterwards", h.Append(t.Context(), storetest.Grant("job", int64(20+at))))
	}
	documenttest.Equal(t, "user_version", asked[int](t, path, "PRAGMA user_version"), schemaVersion)
}

func TestOfHandlesThatAttendFirstAtOnceEachDoesSo(t *testing.T) {
	path := withoutRoster(t)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 6 {
		l := open(t, Options{Path: path})
		must(t, "Init()", l.Init(t.Context()))
		wg.Go(func() {
			<-begin
			if err := l.Attend(t.Context(), []store.Presence{storetest.Presence("job", fmt.Sprint(i))}); err != nil {
				t.Errorf("Attend() = %v, want nil", err)
			}
		})
	}
	close(begin)
	wg.Wait()
	if got := rosterOf(t, open(t, Options{Path: path})); !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5"}) {
		t.Errorf("Presences() = %q, want 0 to 5", got)
	}
}

func TestTimesInTheRosterThatAnotherProgramWroteAreCutToMilliseconds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Init()", l.Init(t.Context()))
	want := storetest.Presence("job", "a")
	fields := storetest.PresenceFields(want)
	fields["seen"] = want.Seen.Add(999_999 * time.Nanosecond).In(time.FixedZone("x", 3600))
	plantPresence(t, path, "job", "a", fields)
	if got, err := l.Presences(t.Context(), "job"); err != nil || len(got) != 1 || got[0].Seen != want.Seen {
		t.Errorf("Presences() = %+v, %v, want one seen at %v", got, err, want.Seen)
	}
}

func TestARowOfTheRosterThatIsUnfitIsPassedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	good := storetest.Presence("job", "a")
	must(t, "Attend()", l.Attend(t.Context(), []store.Presence{good}))
	whole := asked[string](t, path, "SELECT presence FROM Roster")
	for id, text := range map[string]any{
		"b": nil, "c": "", "d": "{", "e": "null", "f": "[]", "g": whole, "h": strings.Replace(whole, `"a"`, `"h"`, 1) + "}",
		"i": strings.Replace(whole, `"a"`, `"i","why":"`+strings.Repeat("x", 16<<20)+`"`, 1),
	} {
		plantText(t, path, "job", id, text)
	}
	plantText(t, path, "JOB", "a", whole)
	plantText(t, path, "job", "z", strings.Replace(whole, `"a"`, `"z"`, 1))
	for _, h := range []*Ledger{l, open(t, Options{Path: path, ReadOnly: true})} {
		if got := rosterOf(t, h); !slices.Equal(got, []string{"a", "z"}) {
			t.Errorf("Presences() = %q, want a and z", got)
		}
	}
}

func TestAForeignUniqueIndexOnTheRosterIsRefusedAndReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Attend()", l.Attend(t.Context(), []store.Presence{storetest.Presence("job", "a")}))
	execute(t, raw(t, path), `CREATE UNIQUE INDEX planted ON Roster (workerType)`)
	wantErr(t, "Attend()", l.Attend(t.Context(), []store.Presence{storetest.Presence("mail", "a"), storetest.Presence("job", "b")}), store.ErrRefused)
	if got := rosterOf(t, l); !slices.Equal(got, []string{"a"}) {
		t.Errorf("Presences() = %q, want what was there", got)
	}
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
}

func TestTheEndOfAContextLeavesTheConnectionToAppends(t *testing.T) {
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "ledger.db")})
	must(t, "Init()", l.Init(t.Context()))
	was := l.file
	var all []store.Presence
	for i := range 300 {
		all = append(all, storetest.Presence("job", fmt.Sprint(i)))
	}
	must(t, "Attend()", l.Attend(t.Context(), all))
	for i := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
		_ = l.Attend(ctx, all)
		_, _ = l.Presences(ctx, "")
		_ = l.Leave(ctx, "job", []string{"1"})
		cancel()
	}
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	if l.file != was || was.one.spent() {
		t.Error("the connection was closed, want it left open")
	}
}

func TestABackupHasTheRoster(t *testing.T) {
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "ledger.db")})
	must(t, "Attend()", l.Attend(t.Context(), []store.Presence{storetest.Presence("job", "a")}))
	path := filepath.Join(t.TempDir(), "copy.db")
	must(t, "Backup()", l.Backup(t.Context(), path))
	if got := rosterOf(t, open(t, Options{Path: path, ReadOnly: true})); !slices.Equal(got, []string{"a"}) {
		t.Errorf("Presences() of the copy = %q, want a", got)
	}
}

func TestATableThatIsNoRosterIsNamedByItsFile(t *testing.T) {
	path := withoutRoster(t)
	db := raw(t, path)
	execute(t, db, `CREATE TABLE Roster (x TEXT)`)
	must(t, "Close()", db.Close())
	_, err := open(t, Options{Path: path}).Presences(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "presences "+path+": ") {
		t.Errorf("Presences() of a file whose table Roster is another = %v, want an error that names the file", err)
	}
}

// Foreign rows, and those of other types, are passed over, and a piece that has nothing else isn't the end.
func TestARosterIsReadInPieces(t *testing.T) {
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "ledger.db")})
	must(t, "Attend()", l.Attend(t.Context(), []store.Presence{storetest.Presence("job", "a"), storetest.Presence("job", "zz"), storetest.Presence("mail", "b")}))
	execute(t, raw(t, l.o.Path), fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO Roster SELECT 'job', printf('m%%04d', i), iif(i %% 2, 'foreign', NULL) FROM n`, 3*rosterPiece))
	documenttest.Equal(t, "roster of all", strings.Join(rosterOf(t, l), " "), "a zz b")
	got, err := l.Presences(t.Context(), "job")
	must(t, "Presences(job)", err)
	documenttest.Equal(t, "roster of a type", len(got), 2)
}
