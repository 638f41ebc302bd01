package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// lendPatience is how long a statement waits for a connection of the application's pool.
const lendPatience = 3 * time.Second

// errNotLent is why a pool lends nothing.
var errNotLent error = late{}

// late is a time-out: an operation that ends so found no store, as one without a connection does.
type late struct{}

func (late) Error() string {
	return fmt.Sprintf("the application's pool gave no connection in %v", lendPatience)
}

// Timeout is that of net.Error.
func (late) Timeout() bool { return true }

// starved is why a pool has no connection at the moment. No option of a worker helps against that.
type starved struct{ why string }

func (e starved) Error() string { return e.why }

// Starved marks it for the engine.
func (starved) Starved() bool { return true }

// Lender lends connections of a pool that the application has, and goes on using. It keeps none: each is given back after what it
// was lent for.
type Lender struct {
	db    *sql.DB
	full  func() string
	clock clock.Clock
	// lent has a place for each connection, until the pool has it back: that takes a moment longer than what it was lent for.
	lent chan struct{}
}

// OpenLent is a pool of what a connector borrows, of which it keeps nothing idle.
func OpenLent(c driver.Connector, most int) *sql.DB {
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(0)
	return db
}

// NewLender returns a lender of so many connections at once, at most. full says why the pool has no connection at the moment, and is empty if it has; nil: by what
// db.Stats says.
func NewLender(db *sql.DB, most int, full func() string, c clock.Clock) *Lender {
	l := &Lender{db: db, full: full, clock: c, lent: make(chan struct{}, most)}
	if full == nil {
		l.full = func() string {
			if s := db.Stats(); s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections {
				return Exhausted("MaxOpenConns", s.MaxOpenConnections)
			}
			return ""
		}
	}
	return l
}

// Exhausted says that a pool whose setting bounds its connections lends none.
func Exhausted(setting string, most int) string {
	return fmt.Sprintf("the application's pool has no free connection: its %s is %d, and all are in use: raise it, or let the application give them back sooner", setting, most)
}

// Loan is a connection that is lent. Nobody else uses it until Return.
type Loan struct {
	// Conn is the driver's connection. What wraps it, as for tracing, and has a method Raw, is taken off.
	Conn any

	back chan func() error
}

// Lend takes a connection. It waits for 3 s by the clock, also if the driver heeds no context. Its errors say that the pool is
// exhausted, if it is, and match store.ErrNotStored, and store.ErrClosed of a pool that was closed; an operation that ends meanwhile says so, too.
func (l *Lender) Lend(ctx context.Context) (*Loan, error) {
	why := l.full()
	if why != "" {
		storekit.TroubleBy(ctx, starved{why})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer l.clock.AfterFunc(lendPatience, func() { cancel(errNotLent) }).Stop()
	loan := &Loan{back: make(chan func() error, 1)}
	lent := make(chan error, 2)
	go func() {
		select {
		case l.lent <- struct{}{}:
			defer func() { <-l.lent }()
		case <-ctx.Done():
			lent <- ctx.Err()
			return
		}
		c, err := l.db.Conn(ctx)
		if err == nil {
			// The pool reserves the connection for the time of Raw.
			err = c.Raw(func(own any) error {
				loan.Conn = unwrapped(own)
				lent <- nil
				return (<-loan.back)()
			})
			_ = c.Close()
		}
		lent <- err
	}()
	var err error
	select {
	case err = <-lent:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		if why != "" {
			storekit.TroubleBy(ctx, nil)
		}
		return loan, nil
	}
	loan.Return(func() error { return nil }) // It may come late.
	if isClosed(err) {
		return nil, storekit.NotStored(errPoolClosed)
	}
	if errors.Is(context.Cause(ctx), errNotLent) {
		err = errNotLent
		if why = cmp.Or(l.full(), why); why != "" {
			err = fmt.Errorf("%w (%w)", starved{why}, errNotLent)
		}
	}
	return nil, storekit.ConnectError{Tried: []error{err}}
}

// errPoolClosed is why a pool lends nothing any more.
var errPoolClosed = fmt.Errorf("%w: the application has closed the pool that it gave", store.ErrClosed)

// isClosed reports whether an error is that of a pool which was closed: of database/sql, whose error has no name, or of pgxpool.
func isClosed(err error) bool {
	return err.Error() == "sql: database is closed" || err.Error() == "closed pool"
}

// unwrapped is the connection of a driver, without what a program has wrapped it in.
func unwrapped(own any) any {
	for {
		w, ok := own.(interface{ Raw() driver.Conn })
		if !ok {
			return own
		}
		own = w.Raw()
	}
}

// Return gives the connection back when restore has made its session what it was. If restore fails, the connection is closed.
func (l *Loan) Return(restore func() error) {
	l.back <- func() error {
		if err := restore(); err != nil {
			return driver.ErrBadConn
		}
		return nil
	}
}
