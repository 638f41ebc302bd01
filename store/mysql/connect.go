package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
)

// connect opens a connection to the first host that takes writes.
func (l *Ledger) connect(ctx context.Context) (driver.Conn, error) {
	return l.core.FirstHost(ctx, 0, func(ctx context.Context, n int) (driver.Conn, error) { return l.open(ctx, n, l.prepare) })
}

// open opens one to the nth host, and prepares its session.
func (l *Ledger) open(ctx context.Context, n int, prepare func(ctx context.Context, c *conn) error) (driver.Conn, error) {
	return l.core.Within(ctx, func(ctx context.Context, user, password string) (driver.Conn, error) {
		var opened *line
		var lost reason
		config := l.config(n, password)
		config.User, config.Logger = user, &lost
		config.DialFunc = func(ctx context.Context, network, address string) (_ net.Conn, err error) {
			kept, err := l.core.Lines.Dial(ctx, network, address, 0)
			if err != nil {
				return nil, err
			}
			opened = &line{Line: kept}
			return opened, nil
		}
		own, err := mysql.NewConnector(config)
		if err != nil {
			return nil, errors.New("the driver refuses the settings") // It may quote them.
		}
		raw, err := own.Connect(ctx)
		if err != nil {
			return nil, l.tls.Explain(l.explain(err, opened, lost.last.Load()))
		}
		made := &conn{driverConn: raw.(driverConn), line: opened, used: l.core.Used}
		if err := prepare(ctx, made); err != nil {
			_ = raw.Close()
			return nil, err
		}
		return made, nil
	})
}

// explain adds to why there is no connection what the driver has logged, if it was lost. A server that doesn't trust the client's
// certificate closes it when the driver takes the handshake for done, and the driver may be too late to read why.
func (l *Ledger) explain(err error, opened *line, lost *error) error {
	if lost == nil {
		return err
	}
	hint := ""
	if _, spoke := opened.greeted(); spoke && l.address.cert != "" {
		hint = ": does the server trust the certificate of tlsCert?"
	}
	return fmt.Errorf("%w: %v%s", err, *lost, hint) //nolint:errorlint // An end of the connection is none of rows.
}

// reason keeps why the driver has lost a connection: its error says no more than that it is invalid, and it logs the rest.
type reason struct{ last atomic.Pointer[error] }

// Print takes what is logged.
func (r *reason) Print(all ...any) {
	for _, one := range all {
		if err, ok := one.(error); ok {
			r.last.Store(&err)
		}
	}
}

// config is the driver's configuration for the nth host.
func (l *Ledger) config(n int, password string) *mysql.Config {
	a := &l.address
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = a.User, password, a.Database
	// Tokens are given as they are, to a server that is verified.
	config.AllowCleartextPasswords = l.core.Password != nil && a.tls == tlsVerify
	config.ConnectionAttributes = "program_name:" + a.AppName
	// One message each way: the driver puts the arguments into the statement.
	config.InterpolateParams = true
	if a.Socket != "" {
		config.Net, config.Addr = "unix", a.Socket
		return config
	}
	config.Net, config.Addr = "tcp", a.Addresses()[n]
	if l.tls != nil {
		config.TLS = l.tls.Now().Clone()
		config.TLS.ServerName = a.Hosts[n]
	}
	return config
}
