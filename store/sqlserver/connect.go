//go:build sqlserver

package sqlserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"

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

// tlsConfig is how connections are encrypted.
func (l *Ledger) tlsConfig() (*tls.Config, error) {
	a := &l.address
	// The server expects a message of the protocol in one record.
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: a.trust || a.encrypt == encryptNo, DynamicRecordSizingDisabled: true}
	if a.ca != "" {
		text, err := os.ReadFile(a.ca)
		if err != nil {
			return nil, fmt.Errorf("options: tlsCA: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("options: tlsCA: there is no certificate in the file")
		}
	}
	return c, nil
}

// encryptions are the driver's words for the values of encrypt. Without encryption, the login alone is encrypted.
var encryptions = map[string]msdsn.Encryption{
	encryptStrict: msdsn.EncryptionStrict, encryptYes: msdsn.EncryptionRequired, encryptNo: msdsn.EncryptionOff,
}

// config is the driver's configuration for the nth host.
func (c connector) config(n int) msdsn.Config {
	a := &c.l.address
	config := msdsn.Config{
		Host: a.Hosts[n], Instance: a.instance, Database: a.Database, User: a.User, Password: a.Password, AppName: a.appName,
		Encryption: encryptions[a.encrypt], TrustServerCertificate: a.trust,
		TLSConfig: c.tls.Clone(), HostInCertificateProvided: a.certificateName != "",
		Protocols: []string{"tcp"}, BrowserMessage: msdsn.BrowserAllInstances,
		// The driver would send a statement again over another connection when sending it has failed, although the server
		// may have executed it: "stored" would become a conflict.
		DisableRetry: true,
		// The context bounds what it takes to connect.
		DialTimeout: -1,
		// A record fits into few packets.
		PacketSize: 8192,
		NoTraceID:  true,
	}
	config.TLSConfig.ServerName = cmp.Or(a.certificateName, config.Host)
	if a.instance == "" {
		config.Port, _ = strconv.ParseUint(a.Ports[n], 10, 16)
	}
	return config
}

// connector makes connections whose sessions are set up for statements of ours.
type connector struct {
	l   *Ledger
	tls *tls.Config
}

// Driver is the driver's own.
func (connector) Driver() driver.Driver { return &mssql.Driver{} }

// Connect opens a connection to the first host that takes writes. Whatever fails, no statement of an operation was
// sent.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	a := &c.l.address
	var failed storekit.ConnectError
	for i, host := range a.Hosts {
		opened, err := c.connect(ctx, i)
		if err == nil {
			return opened, nil
		}
		if len(a.Hosts) > 1 {
			err = fmt.Errorf("%s: %w", net.JoinHostPort(host, a.Ports[i]), err)
		}
		if failed.Tried = append(failed.Tried, err); ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// connect opens one to the nth host.
func (c connector) connect(ctx context.Context, n int) (driver.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slow := fmt.Errorf("no connection in %v (connectTimeout)", c.l.address.connectTimeout)
	defer c.l.clock.AfterFunc(c.l.address.connectTimeout, func() { cancel(slow) }).Stop()
	own := mssql.NewConnectorConfig(c.config(n))
	d := &dialer{ctx: ctx, of: &c.l.lines}
	own.Dialer = d
	opened, err := own.Connect(ctx)
	if err == nil {
		made := &conn{Conn: opened.(*mssql.Conn)}
		if err = made.setUp(ctx); err == nil {
			var open bool
			if made.line, open = d.release(); open {
				return made, nil
			}
			err = net.ErrClosed
		}
		_ = opened.Close()
	}
	if cause := context.Cause(ctx); errors.Is(cause, slow) {
		err = fmt.Errorf("%w: %w", slow, err)
	}
	return nil, err
}
