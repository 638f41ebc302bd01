//go:build sqlserver

package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/slotlease/slotlease/store"
)

// script is what a server says to statements: rows in result sets, and an error that comes in place of a row or a set.
type script struct {
	sets [][][]driver.Value
	// failing is the error, of the statements as a whole if at is negative, else after the rows of the set at.
	failing error
	at      int
}

func (s script) Connect(context.Context) (driver.Conn, error) { return &scripted{script: s}, nil }
func (script) Driver() driver.Driver                          { return nil }

// scripted is a connection that answers by a script, and its rows.
type scripted struct {
	driver.Conn

	script
	set, row int
}

func (c *scripted) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	if c.failing != nil && c.at < 0 {
		return nil, c.failing
	}
	return c, nil
}

func (c *scripted) Close() error           { return nil }
func (c *scripted) Columns() []string      { return make([]string, len(c.sets[c.set][0])) }
func (c *scripted) HasNextResultSet() bool { return c.set+1 < len(c.sets) }

func (c *scripted) NextResultSet() error {
	if c.failing != nil && c.at == c.set {
		return c.failing
	}
	c.set, c.row = c.set+1, 0
	return nil
}

func (c *scripted) Next(into []driver.Value) error {
	if c.row == len(c.sets[c.set]) || c.sets[c.set][c.row][0] == nil {
		if c.failing != nil && c.at == c.set {
			return c.failing
		}
		return io.EOF
	}
	copy(into, c.sets[c.set][c.row])
	c.row++
	return nil
}

// What comes after the row that the insert has given never means that nothing was stored.
func TestAnErrorAfterTheInsertLeavesTheOutcomeOpen(t *testing.T) {
	t.Parallel()
	stored := [][]driver.Value{{int64(7)}}
	none := [][]driver.Value{{nil}}
	read := [][]driver.Value{{int64(1), int64(1_700_000_000_000_000), "db1 since 2026"}}
	lock := said(1222, 16, "Lock request time out period exceeded.")
	for name, c := range map[string]struct {
		script
		stored, read int
		notStored    bool
	}{
		"a success":                         {script{sets: [][][]driver.Value{stored, read}}, 1, 1, false},
		"a record that is hidden":           {script{sets: [][][]driver.Value{stored, {{nil, nil, nil}}}}, 1, 0, false},
		"a duplicate that was ignored":      {script{sets: [][][]driver.Value{none, {{nil, nil, nil}}}}, 0, 0, false},
		"an insert that fails":              {script{failing: lock, at: -1}, 0, 0, true},
		"an insert that fails when it runs": {script{sets: [][][]driver.Value{none}, failing: lock}, 0, 0, true},
		"a commit that fails":               {script{sets: [][][]driver.Value{stored}, failing: lock}, 1, 0, false},
		"a read that fails":                 {script{sets: [][][]driver.Value{stored, {{nil, nil, nil}}}, failing: lock, at: 1}, 1, 0, false},
		"an error at the end":               {script{sets: [][][]driver.Value{stored, read}, failing: lock, at: 1}, 1, 1, false},
		"an error after the last rows":      {script{sets: [][][]driver.Value{stored, read, none}, failing: lock, at: 2}, 1, 1, false},
		"a broken connection":               {script{sets: [][][]driver.Value{stored}, failing: mssql.StreamError{InnerError: io.EOF}}, 1, 0, false},
	} {
		db := sql.OpenDB(c.script)
		own, err := db.Conn(t.Context())
		must(t, "Conn()", err)
		got, err := insertOn(t.Context(), own, "INSERT …; SELECT …")
		if got.stored != c.stored || got.read != c.read || (err != nil) != (c.failing != nil) {
			t.Errorf("insertOn() of %s = %+v, %v, want %d stored and %d read", name, got, err, c.stored, c.read)
		}
		l := ready(t)
		if err == nil {
			continue
		}
		if m := l.meaning(err); m.NotStored != c.notStored {
			t.Errorf("insertOn() of %s = %v, which means %+v, want not stored: %v", name, err, m, c.notStored)
		}
		shown := l.core.Runner.Failed(t.Context(), "append", "job:7", err)
		if errors.Is(shown, store.ErrNotStored) != c.notStored || errors.Is(shown, store.ErrConflict) {
			t.Errorf("an append with %s = %v, want not stored: %v", name, shown, c.notStored)
		}
		must(t, "Close()", db.Close())
	}
}

func TestAConflictIsOneOnlyIfThereIsARecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script
		want error
	}{
		"a record":      {script{sets: [][][]driver.Value{{{int64(1)}}}}, store.ErrConflict},
		"no record":     {script{sets: [][][]driver.Value{{{nil}}}}, nil},
		"a broken read": {script{failing: io.ErrUnexpectedEOF, at: -1}, io.ErrUnexpectedEOF},
	} {
		own, err := sql.OpenDB(c.script).Conn(t.Context())
		must(t, "Conn()", err)
		err = ready(t).core.Taken(t.Context(), own, said(2627, 14, duplicate), "SELECT …")
		if err == nil || errors.Is(err, store.ErrConflict) != (c.want == store.ErrConflict) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("conflict() with %s = %v, want %v", name, err, c.want)
		}
		if m := ready(t).meaning(err); m.NotStored {
			t.Errorf("conflict() with %s = %v, want no word that nothing was stored", name, err)
		}
	}
}

func TestDocumentsHaveOneTypeWhateverTheirLength(t *testing.T) {
	t.Parallel()
	c := &conn{Conn: &mssql.Conn{}}
	for _, text := range []string{strings.Repeat("x", longestName+1), strings.Repeat("x", 9000)} {
		v := driver.NamedValue{Value: text}
		must(t, "CheckNamedValue()", c.CheckNamedValue(&v))
		if got, ok := v.Value.(mssql.NVarCharMax); !ok || string(got) != text {
			t.Errorf("CheckNamedValue() of a document = %T, want nvarchar(max)", v.Value)
		}
	}
	for _, value := range []any{"job", int64(7), []byte("job")} {
		v := driver.NamedValue{Value: value}
		must(t, "CheckNamedValue()", c.CheckNamedValue(&v))
		if _, changed := v.Value.(mssql.NVarCharMax); changed {
			t.Errorf("CheckNamedValue(%v) = %T, want it as it was", value, v.Value)
		}
	}
}

func TestAnInsertThatFindsNothingBelowWentBack(t *testing.T) {
	t.Parallel()
	l, prev := ready(t), store.Record{WorkerType: "job", Seq: 6, Claim: "abc"}
	for name, c := range map[string]struct {
		got  insertion
		prev *store.Record
		want error
	}{
		"nothing below":              {insertion{}, &prev, store.ErrWentBack},
		"another was a moment first": {insertion{read: 1}, &prev, store.ErrConflict},
		"nothing was to be below":    {insertion{}, nil, nil},
	} {
		err := l.settle(t.Context(), c.got, c.prev)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || errors.Is(err, store.ErrWentBack) != (c.want == store.ErrWentBack) {
			t.Errorf("settle() with %s = %v, want %v", name, err, c.want)
		}
	}
}
