package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// dialTime bounds the making of a connection.
	dialTime = 5 * time.Second
	// patience is how long a server may take to answer. It is far more than an operation is given, whose context
	// closes the connection, and than a WAIT may take.
	patience = 2 * time.Minute
)

// mostReply is how many bytes the replies to what is sent at once may have: two records at least. Other programs may store anything.
const mostReply = 32 << 20

// errTooMuch: the replies had more bytes than they may have. The connection can't be used any more.
var errTooMuch = errors.New("the reply is larger than any of a ledger (32 MiB): another program has made that, remove it")

// metered is a connection from which only so many bytes are read.
type metered struct {
	net.Conn

	left atomic.Int64
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	if m.left.Add(-int64(n)) < 0 {
		return 0, errTooMuch
	}
	return n, err
}

// seen is a metered connection by which the driver sees that the server has closed it.
type seen struct {
	*metered
	syscall.Conn
}

// meter makes a metered connection.
func meter(conn net.Conn) (net.Conn, *metered) {
	m := &metered{Conn: conn}
	m.left.Store(mostReply)
	if raw, ok := conn.(syscall.Conn); ok {
		return seen{m, raw}, m
	}
	return m, m
}

// errLost: the server has closed a connection that was idle. Nothing was sent.
var errLost = errors.New("the server has closed the connection")

// link is one connection: a client of the driver that has no other. The driver neither notices the end of contexts
// nor says on which connection it sends; a link ends with its context, and what is sent on it stays together. One
// operation uses it at a time.
type link struct {
	client *goredis.Client
	conn   net.Conn
	meter  *metered
	addr   string
	// fit: the server was found fit over this connection. sections: its INFO takes several sections, as since 7.0.
	fit, sections bool
	// used is when it was used last, by the ledger's clock, and era that of the pool when it was made.
	used time.Time
	era  int
}

// command is one with its arguments.
type command []any

// reach makes a link to an address, whose server's certificate is to have a name. It has yet to log in, as its first
// request does.
func (l *Ledger) reach(ctx context.Context, addr, name string) (*link, error) {
	o, err := l.settings(ctx)
	if err != nil {
		return nil, err
	}
	dial := l.connect
	if o.Dialer != nil && l.byClient(addr) {
		dial = l.connectAsClient(o)
	}
	return l.link(ctx, dial, addr, name, o)
}

func (l *Ledger) link(ctx context.Context, dial dialer, addr, name string, o *goredis.Options) (*link, error) {
	plain, err := dial(ctx, addr, name)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	conn, meter := meter(plain)
	return &link{client: l.client(conn, addr, o), conn: conn, meter: meter, addr: addr}, nil
}

// dialer makes a connection to an address, without a word to the server, whose certificate is to have a name.
type dialer func(ctx context.Context, addr, name string) (net.Conn, error)

func (l *Ledger) connect(ctx context.Context, addr, name string) (net.Conn, error) {
	plain := net.Dialer{Timeout: dialTime, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	if l.tls == nil {
		return plain.DialContext(ctx, "tcp", addr)
	}
	config := l.tls.Clone()
	config.ServerName = cmp.Or(config.ServerName, name)
	return (&tls.Dialer{NetDialer: &plain, Config: config}).DialContext(ctx, "tcp", addr)
}

// client is the driver's, on one connection only: it retries nothing, and can't make another connection, on which
// a WAIT would be answered for nothing.
func (l *Ledger) client(conn net.Conn, addr string, as *goredis.Options) *goredis.Client {
	var taken atomic.Bool
	return goredis.NewClient(&goredis.Options{
		Addr: addr,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			if taken.Swap(true) {
				return lost{conn}, nil // An error would be logged by the driver.
			}
			return conn, nil
		},
		Username: as.Username, Password: as.Password, DB: as.DB, OnConnect: as.OnConnect, CredentialsProvider: as.CredentialsProvider,
		CredentialsProviderContext: as.CredentialsProviderContext, StreamingCredentialsProvider: as.StreamingCredentialsProvider,
		Protocol:   2,
		MaxRetries: -1, DialerRetries: 1,
		PoolSize: 1, PipelinePoolSize: -1, MaxActiveConns: 1, ConnMaxIdleTime: -1,
		ReadTimeout: l.patience, WriteTimeout: l.patience, PoolTimeout: l.patience,
		ReadBufferSize: 16 << 10, WriteBufferSize: 16 << 10,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// open makes a link, and logs in. Whatever fails here, no operation was sent.
func (l *Ledger) open(ctx context.Context) (*link, error) {
	k, err := l.login(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx) // What ended it says more.
	case err != nil:
		return nil, storekit.NotStored(err)
	}
	return k, nil
}

func (l *Ledger) login(ctx context.Context) (*link, error) {
	addr, err := l.locate(ctx)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(addr)
	k, err := l.reach(ctx, addr, host)
	if err != nil {
		l.elsewhere.Store(nil)
		return nil, err
	}
	// To be named in the server's list of clients is a right of its own, which nothing depends on.
	replies, err := k.ask(ctx, command{"PING"}, command{"CLIENT", "SETNAME", l.appName})
	if err == nil {
		err = replies[0].Err()
	}
	if err != nil && !isCode(err, "NOPERM", "LOADING", "MASTERDOWN") {
		k.close()
		return nil, fmt.Errorf("log in at %s: %w", addr, err)
	}
	return k, nil
}

// ask sends commands at once, and returns their replies, in which single commands may have failed. The error is
// that of the connection, which can't be used any more. At the end of ctx the connection is closed. A script that the server
// doesn't know is sent in full.
func (k *link) ask(ctx context.Context, commands ...command) ([]*goredis.Cmd, error) {
	replies, err := k.send(ctx, commands)
	for i, r := range replies {
		if err == nil && isCode(r.Err(), "NOSCRIPT") {
			commands = slices.Clone(commands)
			commands[i] = commands[i].whole()
			return k.send(ctx, commands)
		}
	}
	return replies, err
}

func (k *link) send(ctx context.Context, commands []command) ([]*goredis.Cmd, error) {
	k.meter.left.Store(mostReply)
	stop := context.AfterFunc(ctx, func() { _ = k.conn.Close() })
	replies := make([]*goredis.Cmd, len(commands))
	_, err := k.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, c := range commands {
			replies[i] = p.Do(ctx, c...)
		}
		return nil
	})
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	failed := false
	for _, r := range replies {
		replyErr := r.Err()
		if replyErr != nil && !answered(replyErr) {
			return replies, replyErr
		}
		failed = failed || replyErr != nil
	}
	if failed && answered(err) {
		err = nil
	}
	return replies, err // which is of the login, if no command has failed: nothing was sent then
}

// lost is a connection that there is no more, in place of one that the driver would make anew.
type lost struct{ net.Conn }

func (lost) Read([]byte) (int, error)         { return 0, errLost }
func (lost) Write([]byte) (int, error)        { return 0, errLost }
func (lost) SetDeadline(time.Time) error      { return errLost }
func (lost) SetReadDeadline(time.Time) error  { return errLost }
func (lost) SetWriteDeadline(time.Time) error { return errLost }

// answered reports whether an error is the server's reply to a command.
func answered(err error) bool {
	if errors.Is(err, goredis.Nil) {
		return true
	}
	_, ok := errors.AsType[goredis.Error](err)
	return ok
}

func (k *link) close() {
	_ = k.client.Close()
	_ = k.conn.Close()
}

// moved is the address to which a node of a cluster sends for our keys, or false if an error isn't about that. Nothing
// was done. A reply without a host means the node's own; by itself such an address would lead to this machine.
func moved(err error, node string) (addr string, ok bool) {
	text, ok := replyText(err)
	parts := strings.Fields(text)
	if !ok || len(parts) != 3 || parts[0] != "MOVED" {
		return "", false
	}
	addr = parts[2]
	if host, port, splitErr := net.SplitHostPort(addr); splitErr == nil && host == "" {
		own, _, _ := net.SplitHostPort(node)
		addr = net.JoinHostPort(own, port)
	}
	return addr, true
}
