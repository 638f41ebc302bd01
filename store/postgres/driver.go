package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// connector makes connections whose statements fail if the server has warned that a synchronous standby may lack
// what was committed.
type connector struct{ driver.Connector }

// Connect opens one.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(context.WithValue(ctx, dialled{}, true))
	if err != nil {
		return nil, err
	}
	return &conn{Conn: opened.(*stdlib.Conn)}, nil
}

// conn is a connection of the pool.
type conn struct {
	*stdlib.Conn

	bad bool
}

// IsValid is false of a connection to a server that is the primary no more.
func (c *conn) IsValid() bool { return !c.bad }

// ExecContext executes a statement.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.begin()
	result, err := c.Conn.ExecContext(ctx, query, args)
	return result, c.judge(err)
}

// QueryContext executes a statement that has rows.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.begin()
	found, err := c.Conn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, c.judge(err)
	}
	return rows{found.(*stdlib.Rows), c}, nil
}

// begin forgets the warnings of an earlier statement.
func (c *conn) begin() { delete(c.Conn.Conn().PgConn().CustomData(), warned) }

// judge is the error of a statement, with what the server has warned of.
func (c *conn) judge(err error) error {
	if w, ok := c.Conn.Conn().PgConn().CustomData()[warned].(*pgconn.Notice); ok {
		return errors.Join(unreplicated{w}, err)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == codeReadOnly || isGuard(e)) {
		c.bad = true // Another host may be the primary.
	}
	return err
}

// rows are those of a statement. Its commit comes after them, and so do the warnings.
type rows struct {
	*stdlib.Rows

	of *conn
}

// Next reads a row. After the last, the statement has ended.
func (r rows) Next(into []driver.Value) error {
	err := r.Rows.Next(into)
	if err == nil {
		return nil
	}
	if judged := r.of.judge(nil); judged != nil {
		return judged
	}
	if !errors.Is(err, io.EOF) {
		return r.of.judge(err)
	}
	return err
}

// Close reads what is left.
func (r rows) Close() error { return r.of.judge(r.Rows.Close()) }

// warned is the key of a connection's custom data that has the newest warning about synchronous standbys.
const warned = "slotlease: warned"

// noticed notes the warning that a commit didn't wait for its synchronous standby to the end: the record is stored
// here, and everybody sees it, but a failover may lose it. The server reports success all the same. The text is
// translated, and so the function that warns is looked at. One without its name, as behind a proxy, may be this.
func noticed(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code == codeWarning && (n.Routine == "SyncRepWaitForLSN" || n.Routine == "") || n.Code == codeAdminShutdown {
		c.CustomData()[warned] = n
	}
}

// unreplicated is the error of a statement whose commit didn't wait for the synchronous standbys.
type unreplicated struct{ notice *pgconn.Notice }

func (e unreplicated) Error() string {
	return fmt.Sprintf("the server was told to wait no longer for a synchronous standby, which may lack the newest records: %s (SQLSTATE %s)", e.notice.Message, e.notice.Code)
}
