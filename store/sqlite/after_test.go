package sqlite

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// appendsAfter appends the next record of a type above one that is known.
func appendsAfter(t *testing.T, l *Ledger, prev store.Record) error {
	t.Helper()
	return l.AppendAfter(t.Context(), storetest.Grant(prev.WorkerType, prev.Seq+1), prev)
}

// Somebody restores a copy into the file that workers have open, as by the shell's .restore.
func TestAHandleNoticesThatItsFileWasRestoredInPlace(t *testing.T) {
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "ledger.db")})
	var prev store.Record
	for seq := range int64(3) {
		prev = storetest.Grant("job", seq+1)
		must(t, "Append()", l.Append(t.Context(), prev))
	}
	execute(t, raw(t, l.o.Path), "DELETE FROM WorkerLeases WHERE seq > 1")
	err := appendsAfter(t, l, prev)
	documenttest.Says(t, "AppendAfter() a record that is gone", err, store.ErrWentBack, "job:00000000000000000003 of")
	documenttest.Sentinel(t, "AppendAfter() a record that is gone", err, store.ErrNotStored)
	wantErr(t, "Get()", documenttest.ErrorOf(l.Get(t.Context(), "job", 4)), store.ErrNotFound)
	must(t, "AppendAfter() the record that is there", appendsAfter(t, l, storetest.Grant("job", 1)))
}

// Appends above known records share transactions with others, and each has its own outcome.
func TestAppendsAboveKnownRecordsGatherToo(t *testing.T) {
	l, commits := inUse(t, Options{BusyTimeout: time.Hour})
	records := append(ofTypes(3), storetest.Grant("first", 2), storetest.Grant("lost", 2))
	release := hold(t, l.o.Path)
	all := gathering(t, l, records, always(t))
	release()
	for i, err := range outcomes(t, all, len(records)) {
		wantErr(t, store.Key(records[i].WorkerType, records[i].Seq), err, map[bool]error{true: store.ErrWentBack}[i == 4])
	}
	documenttest.Equal(t, "transactions", commits(), 1)
}

var parameter = regexp.MustCompile(`\?\d*`)

// What workers ask in each slot finds its rows by the key, however long the ledger is.
func TestStatementsReadNoWholeTable(t *testing.T) {
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "ledger.db")})
	must(t, "Init()", l.Init(t.Context()))
	db := raw(t, l.o.Path)
	for _, text := range []string{insertRecord, insertGuarded, selectOne, selectPage, selectTail, deleteOldest, selectTypes, selectRoster} {
		plan, err := rows(t.Context(), db, func(r *sql.Rows) (detail string, err error) {
			return detail, r.Scan(new(int), new(int), new(int), &detail)
		}, "EXPLAIN QUERY PLAN "+parameter.ReplaceAllString(text, "abs(1)"))
		must(t, "EXPLAIN "+text, err)
		for _, step := range plan {
			if strings.Contains(step, "TEMP B-TREE") || strings.HasPrefix(step, "SCAN WorkerLeases") || strings.HasPrefix(step, "SCAN Roster") {
				t.Errorf("%s: %s, want no more than what the key finds", text, step)
			}
		}
	}
}
