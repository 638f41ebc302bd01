package postgres

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// borrow makes a connection of one that the application's pool lends, and asks a server that it hasn't asked yet what it is. Its session
// is the application's: nothing is set or prepared in it that outlives a statement.
func (l *Ledger) borrow(ctx context.Context) (driver.Conn, error) {
	return l.core.Borrow(ctx, CheckPool, "open DB with github.com/jackc/pgx/v5/stdlib, or give a pgxpool.Pool", func(loan *sqldb.Loan) (sqldb.Lent, bool) {
		own, ok := loan.Conn.(*stdlib.Conn)
		k := &conn{Conn: own, of: l, loan: loan}
		return sqldb.Lent{Conn: k, Accept: k.accept, Spoil: func() { k.bad = true; _ = k.Close() }}, ok
	})
}

// accept makes sure that a connection that is lent means what statements say, and leads to a server that takes writes.
func (c *conn) accept(ctx context.Context) error {
	own := c.Conn.Conn().PgConn()
	if status := own.TxStatus(); status != 'I' {
		return errors.New("the application's pool lends a connection with a transaction under way, which is rolled back")
	}
	if encoding := own.ParameterStatus("client_encoding"); encoding != "UTF8" {
		return unfitPool("client_encoding "+encoding, "use UTF8 there")
	}
	if asked := "slotlease: asked by " + c.of.name; own.CustomData()[asked] == nil {
		if err := c.of.validate(ctx, own); err != nil {
			return err
		}
		own.CustomData()[asked] = true
	}
	c.pooled = own.CustomData()[isPooled] != nil
	own.Frontend().Trace(notices{own}, pgproto3.TracerOptions{SuppressTimestamps: true})
	return nil
}

// unfitPool refuses a pool whose connections have a setting that statements can't do with.
func unfitPool(setting, remedy string) error {
	return storekit.Final(storekit.Flaw{Check: CheckPool, What: fmt.Sprintf("the connections of the application's pool have the %.60s", setting), Remedy: remedy}.Refuse())
}

// giveBack gives a connection back, or closes it.
func (c *conn) giveBack() error {
	own := c.Conn.Conn()
	if c.bad && !own.IsClosed() {
		_ = own.PgConn().Conn().Close() // The driver would wait for the server.
		_ = own.Close(context.Background())
	}
	c.loan.Return(func() error {
		if own.IsClosed() {
			return driver.ErrBadConn
		}
		own.PgConn().Frontend().Untrace()
		delete(own.PgConn().CustomData(), warned)
		return nil
	})
	return nil
}

// notices notes that the server gives a notice over a connection. What the pool does with notices is the application's, and the trace
// doesn't have their texts: so each counts as the warning that a synchronous standby may lack what was committed.
type notices struct{ of *pgconn.PgConn }

// Write takes a line of the trace.
func (n notices) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte("B\tNoticeResponse")) {
		n.of.CustomData()[warned] = &pgconn.Notice{Code: codeWarning, Message: "a notice whose text isn't known here (if all statements fail so, the application's pool sets client_min_messages)"}
	}
	return len(line), nil
}

// poolFull says why a pgxpool lends no connection at the moment.
func poolFull(p *pgxpool.Pool) func() string {
	return func() string {
		if s := p.Stat(); s.AcquiredConns() >= s.MaxConns() {
			return sqldb.Exhausted("MaxConns", int(s.MaxConns()))
		}
		return ""
	}
}

// lend takes connections from the application's pool from now on. What a pgxpool is configured with is used to ask its hosts.
func (l *Ledger) lend(o Options) {
	if o.DB != nil {
		l.core.Lend(o.DB, nil)
		return
	}
	config := o.Pool.Config()
	l.config, l.before = config.ConnConfig, config.BeforeConnect
	l.lentDB = stdlib.OpenDBFromPool(o.Pool)
	l.core.Lend(l.lentDB, poolFull(o.Pool))
	a := &l.address
	a.Database, a.User, a.Password = l.config.Database, l.config.User, l.config.Password
	for _, group := range hostsOf(&l.config.Config) {
		a.Hosts, a.Ports = append(a.Hosts, group[0].Host), append(a.Ports, strconv.Itoa(int(group[0].Port)))
	}
	l.core.Hide()
}

// examinePool says what is known of where the application's pool leads.
func (l *Ledger) examinePool() (string, error) {
	switch {
	case l.config == nil:
		return "", storekit.Skip("the servers that DB may lead to aren't known, so they weren't asked whether two of them take writes, nor for their clocks: give a pgxpool.Pool, or the URI")
	case len(l.address.Hosts) > 1:
		return "each host that the application's pool names was asked", nil
	}
	return "the application's pool names one host", nil
}
