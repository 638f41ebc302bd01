package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/slotlease/slotlease/testutil/storetest"
)

// inserting executes all, and answers each query with an error.
type inserting struct{ err error }

func (c inserting) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (c inserting) Driver() driver.Driver                        { return nil }
func (c inserting) Prepare(string) (driver.Stmt, error)          { return nil, c.err }
func (c inserting) Begin() (driver.Tx, error)                    { return nil, c.err }
func (inserting) Close() error                                   { return nil }
func (inserting) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

func (c inserting) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, c.err
}

// Whatever goes wrong after an insert, the record may be stored.
func TestAnErrorAfterAnInsertLeavesItUnknown(t *testing.T) {
	t.Parallel()
	for _, number := range []uint16{1045, 1142, 1146, 1205, 1213, 1290} {
		l, err := Open(t.Context(), Options{URI: "mysql://127.0.0.1/jobs"})
		must(t, "Open()", err)
		db := sql.OpenDB(inserting{&mysql.MySQLError{Number: number, Message: "it is so"}})
		c, err := db.Conn(t.Context())
		must(t, "Conn()", err)
		r := storetest.Grant("job", 1)
		err = l.insertChecked(t.Context(), c, "INSERT INTO LEDGER VALUES (?, ?, ?)", []any{"job", 1, "{}"}, r, "{}")
		if m := l.meaning(err); err == nil || m.NotStored || m.Is != nil {
			t.Errorf("%d after an insert: %v means %+v, want an unknown outcome", number, err, m)
		}
		must(t, "Close()", db.Close())
		must(t, "Close()", l.Close(t.Context()))
	}
}
