package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"

	code "modernc.org/sqlite/lib"
)

// lasting are the statements of appends, readings and trims. A connection prepares each once, because
// to parse it takes longer than to run it.
var lasting = []string{
	insertRecord, beginGroup, selectGuards, insertGuarded, commitGroup, rollbackGroup,
	selectOne, selectPage, selectTail, selectTails, selectLines, selectTypes, deleteOldest,
}

// statements are what a connection has prepared. SQLite itself prepares one anew when the tables have changed.
type statements map[string]driver.Stmt

// statement is a prepared statement, or nil if the text isn't one that is kept, or is in use.
func (c *connection) statement(ctx context.Context, text string) (s driver.Stmt, err error) {
	if !c.of.single || !slices.Contains(lasting, text) {
		return nil, nil
	}
	s, known := c.ready[text]
	if !known {
		if s, err = c.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
		c.of.prepared.Add(1)
		c.ready[text] = s
	}
	return s, nil
}

// forget drops a statement that has failed otherwise than statements in order do.
func (c *connection) forget(text string, err error) {
	switch resultCode(err) & 0xff {
	case code.SQLITE_CONSTRAINT, code.SQLITE_BUSY, code.SQLITE_LOCKED:
	default:
		if s := c.ready[text]; s != nil {
			_ = s.Close()
		}
		delete(c.ready, text)
	}
}

// ExecContext is called by database/sql.
func (c *connection) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	prepared, ok := s.(driver.StmtExecContext)
	if !ok {
		return c.sqliteConn.ExecContext(ctx, text, args)
	}
	r, err := prepared.ExecContext(ctx, args)
	if err != nil {
		c.forget(text, err)
	}
	return r, err
}

// QueryContext is called by database/sql.
func (c *connection) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	prepared, ok := s.(driver.StmtQueryContext)
	if !ok {
		return c.sqliteConn.QueryContext(ctx, text, args)
	}
	r, err := prepared.QueryContext(ctx, args)
	if err != nil {
		c.forget(text, err)
		return nil, err
	}
	c.ready[text] = nil // A statement that is in use has no second cursor.
	return &cursor{Rows: r, end: func() { c.ready[text] = s }}, nil
}

// cursor are the rows of a prepared statement.
type cursor struct {
	driver.Rows
	end func() // gives the statement back
}

// Close is called by database/sql.
func (r *cursor) Close() error {
	defer r.end()
	return r.Rows.Close()
}

// finish ends all statements: one that is left keeps the file open.
func (c *connection) finish() {
	for _, s := range c.ready {
		if s != nil {
			_ = s.Close()
		}
	}
	clear(c.ready)
}
