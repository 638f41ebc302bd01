//go:build sqlserver

package sqlserver

import (
	"context"
	"database/sql/driver"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/slotlease/slotlease/store/internal/sqldb"
)

// borrow makes a connection of one that the application's pool lends: its session is set up for the time of the loan.
func (l *Ledger) borrow(ctx context.Context) (driver.Conn, error) {
	return l.core.Borrow(ctx, CheckPool, "open DB with github.com/microsoft/go-mssqldb", func(loan *sqldb.Loan) (sqldb.Lent, bool) {
		own, ok := loan.Conn.(*mssql.Conn)
		k := &conn{Conn: own, loan: loan, clock: l.clock, used: l.core.Used}
		return sqldb.Lent{Conn: k, Accept: k.setUp, Spoil: func() { k.bad = true; _ = k.Close() }}, ok
	})
}

// forget takes out of a session what marking has put in. The rest the driver has the server reset, before the application uses it.
const forget = `EXEC sys.sp_set_session_context @key = N'` + sessionServer + `', @value = NULL;`

// Close closes a connection, or gives it back.
func (c *conn) Close() error {
	if c.loan == nil {
		return c.Conn.Close()
	}
	sqldb.GiveBack(c.loan, c.clock, c.IsValid, func(ctx context.Context) error {
		_, err := c.all(ctx, forget)
		return err
	})
	return nil
}
