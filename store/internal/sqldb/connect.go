package sqldb

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Connector is a driver.Connector by a function.
type Connector struct {
	Own  driver.Driver
	Open func(ctx context.Context) (driver.Conn, error)
}

// Driver is the driver's own.
func (c Connector) Driver() driver.Driver { return c.Own }

// Connect opens a connection.
func (c Connector) Connect(ctx context.Context) (driver.Conn, error) { return c.Open(ctx) }

// Lend takes connections of the application's pool from now on: MaxConns at once, at most, and one to end statements with.
func (c *Core[F]) Lend(db *sql.DB, full func() string) {
	c.Lender = NewLender(db, c.Address.MaxConns+1, full, c.Clock)
}

// MakePool makes DB: of few connections that open opens, or of those that borrow has the application's pool lend.
func (c *Core[F]) MakePool(own driver.Driver, open, borrow func(ctx context.Context) (driver.Conn, error)) {
	if c.Lender != nil {
		c.DB = OpenLent(Connector{own, borrow}, c.Address.MaxConns)
		return
	}
	c.DB = sql.OpenDB(Connector{own, open})
	c.idle = KeepFewIdle(c.DB, c.Address.MaxConns, c.Clock)
}

// Used notes a statement on a connection of MakePool's.
func (c *Core[F]) Used() {
	if c.idle != nil {
		c.idle.Used()
	}
}

// FirstHost opens a connection to the first host, from one of them on, that takes writes. Whatever fails, no statement of an operation
// was sent. open may return a ConnectError of several addresses of a host.
func (c *Core[F]) FirstHost(ctx context.Context, first int, open func(ctx context.Context, n int) (driver.Conn, error)) (driver.Conn, error) {
	names := c.Address.Addresses()
	hosts := max(1, len(names)) // A socket has no name.
	var failed storekit.ConnectError
	for i := range hosts {
		n := (first + i) % hosts
		opened, err := open(ctx, n)
		if err == nil {
			return opened, nil
		}
		tried := []error{err}
		if several, ok := err.(storekit.ConnectError); ok { //nolint:errorlint // one that open has made
			tried = several.Tried
		}
		for _, err := range tried {
			if len(names) > 1 {
				err = fmt.Errorf("%s: %w", names[n], err)
			}
			failed.Tried = append(failed.Tried, err)
		}
		if ctx.Err() != nil || errors.Is(err, store.ErrRefused) {
			break
		}
	}
	return nil, failed
}

// Login is the user and the password of now, unless PasswordFunc gives that: those given, or others of the URI in a file.
func (c *Core[F]) Login(user, password string) (string, string) {
	if c.Logins == nil {
		return user, password
	}
	now := c.Logins.Now()
	return cmp.Or(now.User, user), cmp.Or(now.Password, password)
}

// Within opens a connection with the login of now, in the time that it may take.
func (c *Core[F]) Within(
	ctx context.Context, open func(ctx context.Context, user, password string) (driver.Conn, error),
) (opened driver.Conn, err error) {
	user, password := c.Login(c.Address.User, c.Address.Password)
	if c.Password != nil {
		if password, err = c.Password.Get(ctx); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slow := fmt.Errorf("no connection in %v (%s)", c.Address.ConnectTimeout, c.Form.Timeout)
	defer c.Clock.AfterFunc(c.Address.ConnectTimeout, func() { cancel(slow) }).Stop()
	opened, err = open(ctx, user, password)
	if err != nil && errors.Is(context.Cause(ctx), slow) {
		err = fmt.Errorf("%w: %w", slow, err)
	}
	return opened, c.Logins.Explain(err)
}

// Lent is a connection that the application's pool lends: accept makes it fit for statements of ours, and spoil closes it.
type Lent struct {
	driver.Conn

	Accept func(ctx context.Context) error
	Spoil  func()
}

// Borrow borrows a connection of the application's pool, which must be one of the driver that lent knows. pool is the check that
// says otherwise.
func (c *Core[F]) Borrow(ctx context.Context, pool, opened string, lent func(loan *Loan) (Lent, bool)) (driver.Conn, error) {
	loan, err := c.Lender.Lend(ctx)
	if err != nil {
		return nil, err
	}
	l, ok := lent(loan)
	if !ok {
		loan.Return(func() error { return nil })
		what := fmt.Sprintf("the driver of the application's pool is another one (%T)", loan.Conn)
		return nil, storekit.Final(storekit.Flaw{Check: pool, What: what, Remedy: opened}.Refuse())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.Clock.AfterFunc(c.Address.ConnectTimeout, cancel).Stop()
	err = l.Accept(ctx)
	if err == nil {
		return l.Conn, nil
	}
	l.Spoil()
	if errors.Is(err, store.ErrRefused) {
		return nil, err
	}
	return nil, storekit.ConnectError{Tried: []error{err}}
}

// restorePatience bounds what it takes to make a session what it was.
const restorePatience = time.Second

// GiveBack gives a connection back, when restore has made its session what it was; it is closed if it is of no use any more.
func GiveBack(loan *Loan, c clock.Clock, useful func() bool, restore func(ctx context.Context) error) {
	loan.Return(func() error {
		if !useful() {
			return driver.ErrBadConn
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		defer c.AfterFunc(restorePatience, cancel).Stop()
		return errors.Join(restore(ctx), ctx.Err())
	})
}

// TLS is how connections are encrypted, by an authority's certificate in a file and the client's own, if they are given.
func TLS(ca, cert, key string, base *tls.Config) (*storekit.Renewed[*tls.Config], error) {
	base.MinVersion = tls.VersionTLS12
	r, err := storekit.RenewedTLS(base, storekit.File{Name: "tlsCA", Path: ca}, storekit.File{Name: "tlsCert", Path: cert}, storekit.File{Name: "tlsKey", Path: key})
	if err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	return r, nil
}

// CheckTLS is the check of how connections are secured. secured says how, and what to do about it if that isn't enough.
func (c *Core[F]) CheckTLS(secured func() (text, remedy string)) Check[F] {
	return Check[F]{Name: store.CheckTLS, Ask: func() (string, error) {
		if c.Lender != nil {
			return "", storekit.Skip("the application's pool decides how its connections are encrypted")
		}
		text, remedy := secured()
		if remedy != "" {
			return storekit.Found("", storekit.Flaw{Check: store.CheckTLS, What: text, Remedy: remedy})
		}
		return text, nil
	}}
}

// CheckPool is the check of an application's pool whose servers aren't known; it is none without such a pool.
func (c *Core[F]) CheckPool(name string, unknown storekit.Skip) []Check[F] {
	if c.Lender == nil {
		return nil
	}
	return []Check[F]{{Name: name, Ask: func() (string, error) { return "", unknown }}}
}
