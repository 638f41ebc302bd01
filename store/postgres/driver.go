package postgres

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// conn is a connection of the pool. Its statements fail if the server has warned that a synchronous standby may lack what was
// committed, and are ended there when nobody waits for them any more.
type conn struct {
	*stdlib.Conn

	of *Ledger
	// loan is that of a connection of the application's pool; nil for one of our own.
	loan *sqldb.Loan
	// pooled says that there is a pooler in between.
	pooled, bad bool
	// executed are the texts that were, of those that may be prepared.
	executed map[string]bool
	// used is when the connection was last reset, by the clock.
	used time.Time
	// listening says that it listens for notifications, and rest ends a listener that takes them in; nil if there is none.
	listening bool
	rest      func() error
}

// IsValid is false of a connection to a server that is the primary no more. Otherwise the connection is idle from now on.
func (c *conn) IsValid() bool {
	if c.bad || c.Conn.Conn().IsClosed() {
		if c.loan == nil {
			c.of.watches.again(c.of)
		}
		return false
	}
	c.listen()
	return true
}

// Close closes it, or gives it back.
func (c *conn) Close() error {
	if c.loan != nil {
		return c.giveBack()
	}
	if c.rest != nil {
		_ = c.rest()
	}
	return c.Conn.Close()
}

// ExecContext executes a statement.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	ctx, query, end, err := c.begin(ctx, query)
	if err != nil {
		return nil, err
	}
	defer end()
	if c.loan != nil {
		args = append([]driver.NamedValue{{Value: pgx.QueryExecModeExec}}, args...)
	}
	result, err := c.Conn.ExecContext(ctx, query, args)
	if c.loan != nil {
		delete(c.Conn.Conn().PgConn().CustomData(), warned) // that a table is there already, perhaps; appends have rows
	}
	return result, c.judge(err)
}

// QueryContext executes a statement that has rows.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	ctx, query, end, err := c.begin(ctx, query)
	if err != nil {
		return nil, err
	}
	found, err := c.Conn.QueryContext(ctx, query, c.prepared(query, args))
	if err != nil {
		end()
		return nil, c.judge(err)
	}
	return rows{found.(*stdlib.Rows), c, end}, nil
}

// begin forgets the warnings of an earlier statement. If there is a pooler, it returns the statement with a name by which
// it is ended when its caller has gone before end is called. Once the caller has gone it begins none.
func (c *conn) begin(ctx context.Context, query string) (with context.Context, named string, end func(), err error) {
	delete(c.Conn.Conn().PgConn().CustomData(), warned)
	if text := c.of.waitsFor(); text != "" {
		storekit.Trouble(ctx, text)
	}
	gone := storekit.Gone(ctx)
	if err := cmp.Or(gone.Err(), storekit.Send(ctx)); err != nil {
		return nil, "", nil, err
	}
	slow := c.of.patient()
	if !c.pooled || ctx.Value(ending{}) != nil {
		return ctx, query, func() { slow() }, nil
	}
	name := c.of.nameStatement()
	ctx, giveUp := context.WithCancel(ctx)
	over, finish := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(gone, func() { c.of.endStatement(over, name, giveUp) })
	return ctx, name + query, func() { stop(); slow(); finish(); giveUp() }, nil
}

// prepared lets the driver have a statement prepared that is executed often, when it is the second time: parsing and planning takes
// the server longer than the rest. A pooler may give the next statement to another process.
func (c *conn) prepared(query string, args []driver.NamedValue) []driver.NamedValue {
	switch {
	case c.loan != nil:
		return append([]driver.NamedValue{{Value: pgx.QueryExecModeExec}}, args...)
	case c.pooled || !c.of.often[query]:
		return args
	case !c.executed[query]:
		if c.executed == nil {
			c.executed = map[string]bool{}
		}
		c.executed[query] = true
		return args
	}
	return append([]driver.NamedValue{{Value: pgx.QueryExecModeCacheStatement}}, args...)
}

// ResetSession reports whether the other side has closed a connection that was idle. A request would find out more, but be one
// more for nearly each statement.
func (c *conn) ResetSession(ctx context.Context) error {
	if c.loan != nil {
		return nil // It goes from one statement to the next, and was never idle.
	}
	defer c.of.patient()()
	c.of.waited()
	now := c.of.clock.Now()
	idle := now.Sub(c.used)
	c.used = now
	if c.rest != nil {
		if c.rest() != nil {
			return driver.ErrBadConn
		}
	} else if idle > time.Second && c.Conn.Conn().PgConn().CheckConn() != nil { //nolint:staticcheck // Ping would be one more request.
		return driver.ErrBadConn
	}
	return c.Conn.ResetSession(ctx)
}

// judge is the error of a statement, with what the server has warned of.
func (c *conn) judge(err error) error {
	if w, ok := c.Conn.Conn().PgConn().CustomData()[warned].(*pgconn.Notice); ok {
		return errors.Join(unreplicated{w}, err)
	}
	switch e, ok := errors.AsType[*pgconn.PgError](err); {
	case !ok:
	case e.Code == codeIdleSession:
		// The server has ended the session before it read the statement (idle_session_timeout). Another connection gets it.
		c.bad = true
		return driver.ErrBadConn
	case e.Code == codeReadOnly || isGuard(e):
		c.bad = true // Another host may be the primary.
	}
	return err
}

// rows are those of a statement. Its commit comes after them, and so do the warnings.
type rows struct {
	*stdlib.Rows

	of  *conn
	end func()
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
func (r rows) Close() error {
	defer r.end()
	return r.of.judge(r.Rows.Close())
}

// Keys of a connection's custom data: warned has the newest warning about synchronous standbys, and isPooled is there if a
// pooler is in between.
const (
	warned   = "slotlease: warned"
	isPooled = "slotlease: pooled"
)

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
