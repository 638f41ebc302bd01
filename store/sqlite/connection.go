package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	modernc "modernc.org/sqlite"
)

// errSpent: the connection of a handle is gone. The operation did nothing.
var errSpent = errors.New("the connection was closed after an interruption")

// connector opens connections that are counted, see enter.
//
// A single one opens one connection. database/sql discards a connection that was
// interrupted, and would open another one, perhaps to other files beside the ledger:
// the last connection that closes removes them.
type connector struct {
	driver.Connector
	path   string
	single bool
	// prepared counts the statements that its connection has prepared to keep them.
	prepared atomic.Int64

	mu      sync.Mutex
	begun   bool
	closing bool // or closed
}

// sqliteConn is what a connection of SQLite can do.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// Connect is called by database/sql.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	c.mu.Lock()
	again := c.begun
	c.begun = true
	c.mu.Unlock()
	if c.single && again {
		return nil, errSpent
	}
	leave := enter(c.path)
	conn, err := c.Connector.Connect(ctx)
	if leave == nil {
		leave = enter(c.path) // The connection may have created it, and has no lock yet.
	}
	if leave == nil {
		leave = func() {}
	}
	if err != nil {
		leave()
		return nil, err
	}
	known, ok := conn.(sqliteConn)
	if !ok {
		_ = conn.Close()
		leave()
		return nil, fmt.Errorf("SQLite's connection is a %T, which can't do all that is needed", conn)
	}
	return &connection{sqliteConn: known, of: c, leave: leave, ready: statements{}}, nil
}

// connection is one that notes when it is closed. That of a single connector keeps statements prepared.
type connection struct {
	sqliteConn
	of    *connector
	leave func()
	ready statements
}

// Close is called by database/sql. The file stays claimed for its log until SQLite has
// written the log back.
func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.closing = true
	c.of.mu.Unlock()
	defer c.leave()
	c.finish()
	return c.sqliteConn.Close()
}

// spent reports whether the connection of a single connector is being closed, or was.
func (c *connector) spent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// defensive is for a handle that can't damage the file.
const defensive = "&_defensive=1"

// connect prepares a handle that can't damage the file. SQLite opens the file at the
// first use.
func connect(path, query string) (*sql.DB, error) {
	return dial(path, query+defensive)
}

// dial is connect without the defence.
func dial(path, query string) (*sql.DB, error) {
	c, err := connectorTo(path, query)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// connectorTo makes connections to a file. SQLite's busy wait is off, see patiently.
func connectorTo(path, query string) (*connector, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	dsn := url.URL{
		Scheme:   "file",
		Path:     slashed,
		RawQuery: query + "&_busy_timeout=0&_error_rc=1&_dqs=0&_pragma=trusted_schema(0)",
	}
	c, err := modernc.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	return &connector{Connector: c, path: path}, nil
}
