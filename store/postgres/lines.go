package postgres

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// lines are the network connections that are open, and which servers were tried in vain.
type lines struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
	// vain counts the connections to an address since the last that could be used, and ips has the addresses of a
	// host, as they were found last.
	vain map[string]int
	ips  map[string][]string
	// direct says that a connection led to a server, and pooled that one led to a pooler.
	direct, pooled bool
}

// dialled marks the contexts of connections that are for statements. The driver opens others, to have a statement
// cancelled that was given up.
type dialled struct{}

// errNoCancel is why that isn't done behind a pooler.
var errNoCancel = errors.New("PgBouncer 1.18 crashes by requests to cancel: https://github.com/pgbouncer/pgbouncer/issues/822")

// dial opens one. It notices within half a minute that the other side has gone.
func (l *lines) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // The time was over before this host's turn.
	}
	l.mu.Lock()
	if l.open == nil {
		l.open, l.vain = map[net.Conn]struct{}{}, map[string]int{}
	}
	cancels := ctx.Value(dialled{}) == nil
	if !cancels {
		l.vain[address]++
	}
	may := !cancels || l.direct && !l.pooled
	l.mu.Unlock()
	if !may {
		return nil, errNoCancel
	}
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	l.open[c] = struct{}{}
	return line{c, l, address}, nil
}

// worked notes that a connection can be used, and whether it is one to a pooler.
func (l *lines) worked(c net.Conn, pooled bool) {
	if own, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = own.NetConn() // below TLS
	}
	if own, ok := c.(line); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.vain, own.address)
		l.direct, l.pooled = l.direct || !pooled, l.pooled || pooled
	}
}

// lookUp finds the addresses of a host.
func (l *lines) lookUp(ctx context.Context, host string) ([]string, error) {
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.ips == nil {
			l.ips = map[string][]string{}
		}
		l.ips[host] = ips
	}
	return ips, err
}

// sort puts the hosts first that were tried in vain least often: a machine that is silent costs a connection up to
// its time-out, and the operation perhaps all of its time.
func (l *lines) sort(c *pgconn.Config) {
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	l.mu.Lock()
	slices.SortStableFunc(all, func(a, b *pgconn.FallbackConfig) int { return cmp.Compare(l.tried(a), l.tried(b)) })
	l.mu.Unlock()
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

// tried is how often a host was tried in vain. The caller holds mu.
func (l *lines) tried(c *pgconn.FallbackConfig) (most int) {
	if isFolder(c.Host) {
		_, path := pgconn.NetworkAddress(c.Host, c.Port)
		return l.vain[path]
	}
	for _, ip := range l.ips[c.Host] {
		most = max(most, l.vain[net.JoinHostPort(ip, strconv.Itoa(int(c.Port)))])
	}
	return most
}

// close closes those that are open, whatever the driver still does with them.
func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for c := range l.open {
		_ = c.Close()
	}
}

// line is one that is forgotten when it is closed.
type line struct {
	net.Conn

	of      *lines
	address string
}

func (c line) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
