//go:build sqlserver

package sqlserver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/benbjohnson/clock"
	mssql "github.com/microsoft/go-mssqldb"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// conn is a connection of the pool, whose session is set up.
type conn struct {
	*mssql.Conn

	line net.Conn
	// loan is that of a connection of the application's pool, by whose clock it is given back; nil for one of our own.
	loan  *sqldb.Loan
	clock clock.Clock
	// used notes a statement.
	used func()
	bad  bool
}

// settings make sessions alike, whatever the server's "user options", a login's language and a logon trigger say. They
// stay in force because no statement of ours changes them, and the pool never resets a session.
const settings = `SET IMPLICIT_TRANSACTIONS OFF;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET XACT_ABORT ON;
SET NOCOUNT OFF;
SET ANSI_NULLS ON;
SET ANSI_PADDING ON;
SET ANSI_WARNINGS ON;
SET ARITHABORT ON;
SET CONCAT_NULL_YIELDS_NULL ON;
SET QUOTED_IDENTIFIER ON;
SET NUMERIC_ROUNDABORT OFF;
SET ROWCOUNT 0;
SET TEXTSIZE 2147483647;
SET LOCK_TIMEOUT 2000;
SET LANGUAGE us_english;
`

// marking notes in the session which process it is of: the server, and when its tempdb was made, which is at each start.
// Azure SQL Database doesn't show that one.
const marking = `DECLARE @server nvarchar(300) = COALESCE(CONVERT(nvarchar(128), SERVERPROPERTY('ServerName')), N'a server without a name')
	+ COALESCE(N'` + sqldb.Since + `' + CONVERT(nvarchar(30), (SELECT create_date FROM sys.databases WHERE name = N'tempdb'), 126), N'');
EXEC sys.sp_set_session_context @key = N'` + sessionServer + `', @value = @server;
`

// askUpdateability is READ_WRITE on the server that takes the database's writes.
const askUpdateability = `SELECT CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability'));`

// setUp sets up a session. It returns an error unless the server takes writes.
func (c *conn) setUp(ctx context.Context) error {
	if _, err := c.all(ctx, settings+marking); err != nil {
		return fmt.Errorf("set up the session: %w", err)
	}
	found, err := c.all(ctx, askUpdateability)
	switch {
	case err != nil:
		return err
	case len(found) != 1 || len(found[0]) != 1 || found[0][0] == "":
		return errors.New("the server doesn't say whether the database takes writes")
	case found[0][0] != "READ_WRITE":
		return storekit.Unfit{Why: "the database takes no writes here (Updateability is " + found[0][0] + "): it is a readable secondary, a snapshot, or read-only"}
	}
	return nil
}

// ResetSession keeps the session as it is: the driver would have the server reset it.
func (c *conn) ResetSession(context.Context) error {
	if !c.IsValid() {
		return driver.ErrBadConn
	}
	return nil
}

// IsValid is false of a connection that was given up, or whose database takes no writes any more.
func (c *conn) IsValid() bool { return !c.bad && c.Conn.IsValid() }

// ExecContext executes a statement.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := storekit.Send(ctx); err != nil {
		return nil, err
	}
	c.used()
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	done := c.watch(ctx)
	result, err := s.ExecContext(c.within(ctx), args)
	done()
	return result, c.judge(err)
}

// QueryContext executes statements that have rows.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := storekit.Send(ctx); err != nil {
		return nil, err
	}
	c.used()
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	done := c.watch(ctx)
	found, err := s.QueryContext(c.within(ctx), args)
	if err != nil {
		done()
		return nil, c.judge(err)
	}
	return &rows{Rows: found.(*mssql.Rows), of: c, done: done}, nil
}

// longestName is the length of the longest name, in bytes: of a worker type, or the id of a presence.
const longestName = 64

// CheckNamedValue gives documents the type nvarchar(max). The driver would declare each with its own length, and the
// server would keep a plan for each length.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if text, ok := v.Value.(string); ok && len(text) > longestName {
		v.Value = mssql.NVarCharMax(text)
		return nil
	}
	return c.Conn.CheckNamedValue(v)
}

// statement is one of the driver's, which sends nothing yet.
func (c *conn) statement(ctx context.Context, query string) (*mssql.Stmt, error) {
	if !c.IsValid() {
		return nil, driver.ErrBadConn
	}
	s, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.(*mssql.Stmt), nil
}

// within is the context of a statement, which watch ends; that of one on a connection that is lent, the driver ends.
func (c *conn) within(ctx context.Context) context.Context {
	if c.loan != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// watch closes the connection when the context ends, until the function that it returns is called. The driver would
// ask the server to interrupt the statement, and wait for seconds.
func (c *conn) watch(ctx context.Context) (done func()) {
	if c.line == nil {
		return func() {} // The session is being set up: the dialer closes it. Or it is lent.
	}
	stop := context.AfterFunc(ctx, func() { _ = c.line.Close() })
	return func() {
		if !stop() {
			c.bad = true
		}
	}
}

// judge is the error of a statement. A connection is kept only after an error of the server that leaves it whole.
func (c *conn) judge(err error) error {
	if err == nil {
		return nil
	}
	_, fatal := errors.AsType[mssql.ServerError](err)
	_, said := errors.AsType[mssql.Error](err)
	if _, isUnfit := ofServer(err); isUnfit || fatal || !said {
		c.bad = true
	}
	if c.loan != nil && errors.Is(err, driver.ErrBadConn) {
		return errors.New(err.Error()) // The application's driver may say so of a statement that was executed, to have it repeated.
	}
	return err
}

// rows are those of statements.
type rows struct {
	*mssql.Rows

	of   *conn
	done func()
}

// Next reads a row.
func (r *rows) Next(into []driver.Value) error {
	err := r.Rows.Next(into)
	if err != nil && !errors.Is(err, io.EOF) {
		return r.of.judge(err)
	}
	return err
}

// Close ends the reading.
func (r *rows) Close() error {
	err := r.Rows.Close()
	r.done()
	return r.of.judge(err)
}

// all reads the rows of statements on a connection, as texts. NULL is empty.
func (c *conn) all(ctx context.Context, text string) ([][]string, error) {
	found, err := c.QueryContext(ctx, text, nil)
	if err != nil {
		return nil, err
	}
	return sqldb.Texts(found)
}
