package mysql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// getenv reads the environment.
func getenv(o store.OpenOptions) func(string) string {
	if o.Getenv != nil {
		return o.Getenv
	}
	return os.Getenv
}

// pool makes the pool of connections.
func (l *Ledger) pool() (*sql.DB, error) {
	config, err := l.tlsConfig()
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector{l, config})
	db.SetMaxOpenConns(l.address.maxConns)
	db.SetMaxIdleConns(min(l.address.maxConns, 2))
	db.SetConnMaxIdleTime(10 * time.Minute)
	return db, nil
}

// tlsConfig is how connections are encrypted; nil if they aren't.
func (l *Ledger) tlsConfig() (*tls.Config, error) {
	a := &l.address
	if a.tls == tlsOff {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: a.tls == tlsSkip}
	if a.ca != "" {
		text, err := os.ReadFile(a.ca)
		if err != nil {
			return nil, fmt.Errorf("options: tlsCA: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("options: tlsCA: there is no certificate in the file")
		}
	}
	if a.cert != "" {
		pair, err := tls.LoadX509KeyPair(a.cert, a.key)
		if err != nil {
			return nil, fmt.Errorf("options: tlsCert and tlsKey: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// connector makes connections whose sessions are set up for statements of ours.
type connector struct {
	l   *Ledger
	tls *tls.Config
}

// Driver is the driver's own.
func (connector) Driver() driver.Driver { return mysql.MySQLDriver{} }

// Connect opens a connection to the first host that takes writes. Whatever fails, no statement of an operation was
// sent.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	a := &c.l.address
	if a.Socket != "" {
		opened, err := c.connect(ctx, "unix", a.Socket, "")
		if err != nil {
			return nil, storekit.ConnectError{Tried: []error{err}}
		}
		return opened, nil
	}
	var failed storekit.ConnectError
	for i, host := range a.Hosts {
		at := net.JoinHostPort(host, a.Ports[i])
		opened, err := c.connect(ctx, "tcp", at, host)
		if err == nil {
			return opened, nil
		}
		if len(a.Hosts) > 1 {
			err = fmt.Errorf("%s: %w", at, err)
		}
		if failed.Tried = append(failed.Tried, err); ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// connect opens one to a host.
func (c connector) connect(ctx context.Context, network, at, name string) (driver.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &c.l.address
	slow := fmt.Errorf("no connection in %v (connectTimeout)", a.connectTimeout)
	defer c.l.clock.AfterFunc(a.connectTimeout, func() { cancel(slow) }).Stop()
	var opened *line
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = a.User, a.Password, a.Database
	config.Net, config.Addr = network, at
	config.ConnectionAttributes = "program_name:" + a.appName
	config.Logger = &mysql.NopLogger{}
	// One message each way: the driver puts the arguments into the statement.
	config.InterpolateParams = true
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		var err error
		opened, err = c.l.dialer.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return opened, nil
	}
	if c.tls != nil {
		config.TLS = c.tls.Clone()
		config.TLS.ServerName = name
	}
	own, err := mysql.NewConnector(config)
	if err != nil {
		return nil, errors.New("the driver refuses the settings") // It may quote them.
	}
	raw, err := own.Connect(ctx)
	if err == nil {
		made := &conn{driverConn: raw.(driverConn), line: opened}
		if err = c.l.prepare(ctx, made); err == nil {
			return made, nil
		}
		_ = raw.Close()
	}
	if cause := context.Cause(ctx); errors.Is(cause, slow) {
		err = fmt.Errorf("%w: %w", slow, err)
	}
	return nil, err
}
