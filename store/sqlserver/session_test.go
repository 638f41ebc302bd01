//go:build sqlserver

package sqlserver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

// A statement whose context has ended ends with its connection.
func TestAStatementThatIsGivenUpCostsItsConnection(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	c := &conn{line: near, used: func() {}}
	ctx, cancel := context.WithCancel(t.Context())
	c.watch(ctx)()
	if c.bad {
		t.Error("a connection is bad after a statement that has ended by itself")
	}
	done := c.watch(ctx)
	cancel()
	_ = far.SetReadDeadline(time.Now().Add(patience))
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("Read() at the server = %v, want the end of the connection", err)
	}
	if done(); !c.bad {
		t.Error("a connection that was closed isn't bad")
	}
}

func TestAConnectionIsKeptAfterErrorsThatLeaveItWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err error
		bad bool
	}{
		"none":                          {nil, false},
		"a key that is taken":           {said(2627, 14, duplicate), false},
		"a lock that is waited for":     {said(1222, 16, "Lock request time out period exceeded."), false},
		"a session that isn't ours":     {said(51700, 16, guardText), true},
		"a database that takes no more": {said(3906, 16, "read-only"), true},
		"a broken stream":               {mssql.StreamError{InnerError: io.EOF}, true},
		"a connection that was reset":   {&net.OpError{Op: "read", Err: io.EOF}, true},
	} {
		one := &conn{used: func() {}}
		if err := one.judge(c.err); fmt.Sprint(err) != fmt.Sprint(c.err) || one.bad != c.bad {
			t.Errorf("Judge() of %s = %v, bad %v, want it as it was, bad %v", name, err, one.bad, c.bad)
		}
	}
	broken := &conn{bad: true, used: func() {}}
	if err := broken.ResetSession(t.Context()); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("ResetSession() of a bad connection = %v, want %v", err, driver.ErrBadConn)
	}
	if _, err := broken.QueryContext(t.Context(), "SELECT 1", nil); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("QueryContext() on a bad connection = %v, want %v", err, driver.ErrBadConn)
	}
	if _, err := broken.ExecContext(t.Context(), "SELECT 1", nil); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("ExecContext() on a bad connection = %v, want %v", err, driver.ErrBadConn)
	}
}
