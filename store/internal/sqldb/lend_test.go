package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

// theirs is a driver of an application, whose connections do nothing. While hang isn't nil, it opens none until that is closed, whatever
// the context says.
type theirs struct {
	hang           chan struct{}
	opened, closed atomic.Int32
}

func (d *theirs) Driver() driver.Driver { return nil }

func (d *theirs) Connect(context.Context) (driver.Conn, error) {
	if d.hang != nil {
		<-d.hang
	}
	d.opened.Add(1)
	return wrapping{&theirConn{of: d}}, nil
}

type theirConn struct {
	driver.Conn

	of *theirs
}

func (c *theirConn) Close() error {
	c.of.closed.Add(1)
	return nil
}

// wrapping is a connection as programs wrap them to trace statements.
type wrapping struct{ *theirConn }

func (w wrapping) Raw() driver.Conn { return w.theirConn }

func TestALoanIsGivenBackOrClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &theirs{}
		db := sql.OpenDB(d)
		defer func() { _ = db.Close() }()
		l := NewLender(db, 1, nil, clock.NewMock())
		for _, want := range []struct {
			restored error
			closed   int32
		}{{nil, 0}, {nil, 0}, {errors.New("can't"), 1}} {
			loan, err := l.Lend(t.Context())
			if err != nil {
				t.Fatalf("Lend() = %v, want a connection", err)
			}
			if _, ok := loan.Conn.(*theirConn); !ok {
				t.Errorf("Lend() gives a %T, want the driver's own connection", loan.Conn)
			}
			if n := db.Stats().InUse; n != 1 {
				t.Errorf("%d connections are in use, want the one that is lent", n)
			}
			loan.Return(func() error { return want.restored })
			synctest.Wait()
			if n := db.Stats().InUse; n != 0 || d.closed.Load() != want.closed {
				t.Errorf("%d connections are in use and %d closed after a loan, want 0 and %d", n, d.closed.Load(), want.closed)
			}
		}
		if n := d.opened.Load(); n != 1 {
			t.Errorf("%d connections were opened, want one that is lent again", n)
		}
	})
}

// A session is restored before the pool has its connection back. It counts until then.
func TestNoMoreIsLentThanMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := sql.OpenDB(&theirs{})
		defer func() { _ = db.Close() }()
		l := NewLender(db, 1, nil, clock.NewMock())
		first, err := l.Lend(t.Context())
		if err != nil {
			t.Fatalf("Lend() = %v, want a connection", err)
		}
		restored, second := make(chan struct{}), make(chan *Loan, 1)
		first.Return(func() error { <-restored; return nil })
		go func() {
			loan, err := l.Lend(t.Context())
			if err != nil {
				t.Errorf("Lend() = %v, want a connection", err)
			}
			second <- loan
		}()
		if synctest.Wait(); len(second) > 0 || db.Stats().InUse != 1 {
			t.Errorf("%d connections are in use while one is restored, want that one", db.Stats().InUse)
		}
		close(restored)
		(<-second).Return(func() error { return nil })
	})
}

func TestAPoolIsWaitedForWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			full func() string
			says string
		}{
			"hangs":     {nil, "the application's pool gave no connection in 3s"},
			"exhausted": {func() string { return Exhausted("MaxConns", 2) }, "its MaxConns is 2, and all are in use: raise it, or let the application give them back sooner (the application's pool gave no connection in 3s)"},
		} {
			d := &theirs{hang: make(chan struct{})}
			db := sql.OpenDB(d)
			mock := clock.NewMock()
			l := NewLender(db, 1, c.full, mock)
			failed := make(chan error, 1)
			go func() {
				_, err := l.Lend(context.WithoutCancel(t.Context()))
				failed <- err
			}()
			synctest.Wait()
			mock.Add(lendPatience - time.Nanosecond)
			if synctest.Wait(); len(failed) > 0 {
				t.Errorf("%s: Lend() ends before its time", name)
			}
			mock.Add(time.Nanosecond)
			if err := <-failed; !errors.Is(err, store.ErrNotStored) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: Lend() = %v, want %q", name, err, c.says)
			}
			close(d.hang)
			if synctest.Wait(); db.Stats().InUse != 0 {
				t.Errorf("%s: %d connections that came late are in use", name, db.Stats().InUse)
			}
			_ = db.Close()
		}
	})
}

func TestAPoolThatIsClosedLendsNothingAnyMore(t *testing.T) {
	db := sql.OpenDB(&theirs{})
	must(t, "Close()", db.Close())
	_, err := NewLender(db, 1, nil, clock.NewMock()).Lend(t.Context())
	if !errors.Is(err, store.ErrClosed) || !errors.Is(err, store.ErrNotStored) {
		t.Errorf("Lend() by a pool that is closed = %v, want ErrClosed and ErrNotStored", err)
	}
}
