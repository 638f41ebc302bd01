//go:build sqlserver

package sqlserver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"net"
	"strconv"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"
)

// encryptions are the driver's words for the values of encrypt. Without encryption, the login alone is encrypted.
var encryptions = map[string]msdsn.Encryption{
	encryptStrict: msdsn.EncryptionStrict, encryptYes: msdsn.EncryptionRequired, encryptNo: msdsn.EncryptionOff,
}

// config is the driver's configuration for the nth host.
func (l *Ledger) config(n int) msdsn.Config {
	a := &l.address
	config := msdsn.Config{
		Host: a.Hosts[n], Instance: a.instance, Database: a.Database, User: a.User, AppName: a.AppName,
		Encryption: encryptions[a.encrypt], TrustServerCertificate: a.trust,
		TLSConfig: l.tls.Now().Clone(), HostInCertificateProvided: a.certificateName != "",
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

// connect opens a connection to the first host that takes writes.
func (l *Ledger) connect(ctx context.Context) (driver.Conn, error) {
	return l.core.FirstHost(ctx, 0, l.open)
}

// open opens one to the nth host.
func (l *Ledger) open(ctx context.Context, n int) (driver.Conn, error) {
	return l.core.Within(ctx, func(ctx context.Context, user, password string) (driver.Conn, error) {
		config := l.config(n)
		config.User, config.Password = user, password
		own := mssql.NewConnectorConfig(config)
		d := &dialer{ctx: ctx, of: &l.core.Lines, limit: l.address.ConnectTimeout}
		own.Dialer = d
		opened, err := own.Connect(ctx)
		if err != nil {
			return nil, l.tls.Explain(err)
		}
		made := &conn{Conn: opened.(*mssql.Conn), used: l.core.Used}
		if err = made.setUp(ctx); err == nil {
			var open bool
			if made.line, open = d.release(); open {
				return made, nil
			}
			err = net.ErrClosed
		}
		_ = opened.Close()
		return nil, err
	})
}
