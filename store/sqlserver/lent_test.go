//go:build sqlserver

package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	_ "modernc.org/sqlite"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
)

// theirs is a pool of an application, whose server says nothing.
func theirs(t *testing.T) *sql.DB {
	t.Helper()
	c, err := mssql.NewConnector("sqlserver://me:" + canary + "@" + silent(t) + "?database=d&dial+timeout=60")
	must(t, "NewConnector()", err)
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestAPoolOfAnotherDriverIsRefused(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", ":memory:")
	must(t, "Open()", err)
	t.Cleanup(func() { _ = db.Close() })
	l := opened(t, Options{DB: db})
	_, err = l.Now(within(t))
	documenttest.Says(t, "Now() by another driver", err, store.ErrRefused, "the driver of the application's pool is another one")
	must(t, "Close()", l.Close(within(t)))
	for end := time.Now().Add(patience); db.Stats().InUse > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // It is given back by a goroutine.
	}
	if n := db.Stats().InUse; n != 0 || db.PingContext(within(t)) != nil {
		t.Errorf("%d connections are in use after Close, want a pool that can be used", n)
	}
}

// The driver of a pool with retries reports a connection as bad whose statement was executed, perhaps.
func TestARetryOfTheApplicationsDriverIsNotTakenForNotSent(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{DB: theirs(t)})
	lent, own := &conn{loan: &sqldb.Loan{}}, &conn{}
	if m := l.meaning(lent.judge(driver.ErrBadConn)); m.NotStored || !lent.bad {
		t.Errorf("a bad connection that is lent means %+v, kept %v, want that the outcome is unknown, and it closed", m, !lent.bad)
	}
	if m := l.meaning(own.judge(driver.ErrBadConn)); !m.NotStored {
		t.Errorf("a bad connection of our own means %+v, want that nothing was stored", m)
	}
}

func TestAPoolAndAURIAreGivenOneAtATime(t *testing.T) {
	t.Parallel()
	ask := func(context.Context) (string, error) { return "", nil }
	for says, o := range map[string]Options{
		"leave them out":              {DB: theirs(t), URI: "sqlserver://h/d"},
		"PasswordFunc and a password": {URI: "sqlserver://u:p@h/d", PasswordFunc: ask},
		"URI, Password, PasswordFunc": {DB: theirs(t), PasswordFunc: ask},
	} {
		if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Open() = %v, want %q", err, says)
		}
	}
}
