package mysql

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
)

// However long a ledger is, and without statistics, its statements find their rows by the key, and sort none.
func TestStatementsReadByTheKey(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	l := initialised(t, Options{URI: uriOf(t, dsn)})
	execute(t, dsn, `INSERT INTO worker_leases SELECT IF(seq % 10, 'job', CONCAT('t', seq)), seq, '{}' FROM seq_1_to_20000`)
	c, err := l.db.Conn(within(t))
	must(t, "Conn()", err)
	defer func() { _ = c.Close() }()
	d := l.dialect()
	for name, s := range map[string]struct {
		statement sqldb.Statement
		args      []any
	}{
		"get":  {d.Get, []any{"job", 7, 7}},
		"tail": {d.Tail, []any{"job", 2}},
		"page": {d.Page, []any{"job", 7, 1000}},
		"trim": {d.Trim, []any{"job", 19_000, store.TrimBatch}},
	} {
		args := s.args
		if s.statement.Args != nil {
			args = nil
			for _, i := range s.statement.Args {
				args = append(args, s.args[i])
			}
		} else {
			args = args[:strings.Count(s.statement.Text, "?")]
		}
		err := sqldb.Each(within(t), c, func(rows *sql.Rows) error {
			var cells [10]sql.NullString
			if err := rows.Scan(&cells[0], &cells[1], &cells[2], &cells[3], &cells[4], &cells[5], &cells[6], &cells[7], &cells[8], &cells[9]); err != nil {
				return err
			}
			kind, extra := cells[3].String, cells[9].String
			if kind == "ALL" && cells[2].String == "worker_leases" || kind == "index" || strings.Contains(extra, "filesort") {
				t.Errorf("%s: %s of %s, %s, want that it finds its rows by the key", name, kind, cells[2].String, extra)
			}
			return nil
		}, "EXPLAIN "+s.statement.Text, args...)
		must(t, "EXPLAIN "+name, err)
	}
}
