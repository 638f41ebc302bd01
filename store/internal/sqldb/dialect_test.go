package sqldb

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the driver
)

func TestAnErrorAfterTheRowIsThatOfTheStatement(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "rows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var n int64
	text := Statement{Text: `SELECT abs(column1) FROM (VALUES (1), (-9223372036854775808))`}
	if err := text.row(t.Context(), db, []any{&n}); err == nil {
		t.Errorf("row() of a row and an error = %d, nil, want the error", n)
	}
	if err := (Statement{Text: `SELECT 7 UNION ALL SELECT 8`}).row(t.Context(), db, []any{&n}); err != nil || n != 7 {
		t.Errorf("row() of two rows = %d, %v, want the first", n, err)
	}
	if err := (Statement{Text: `SELECT 7 WHERE false`}).row(t.Context(), db, []any{&n}); err != sql.ErrNoRows {
		t.Errorf("row() of none = %v, want %v", err, sql.ErrNoRows)
	}
}
