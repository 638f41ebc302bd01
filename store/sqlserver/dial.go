//go:build sqlserver

package sqlserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// lines opens network connections, and knows those that are open.
type lines struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// dial opens one. The listener of an availability group has an address in each subnet, of which one answers: all are
// tried at the same time. It notices within half a minute that the other side has gone.
func (d *lines) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return nil, err
	}
	own := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, len(found))
	for _, at := range found {
		go func() {
			c, err := own.DialContext(inner, network, net.JoinHostPort(at.String(), port))
			results <- result{c, err}
		}()
	}
	var failed []error
	for i := range found {
		r := <-results
		if r.err != nil {
			failed = append(failed, r.err)
			continue
		}
		go func() {
			for range len(found) - i - 1 {
				if r := <-results; r.err == nil {
					_ = r.conn.Close()
				}
			}
		}()
		return d.keep(r.conn)
	}
	return nil, errors.Join(failed...)
}

// keep notes an open connection.
func (d *lines) keep(c net.Conn) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	if d.open == nil {
		d.open = map[net.Conn]struct{}{}
	}
	d.open[c] = struct{}{}
	return &line{Conn: c, of: d}, nil
}

// close closes those that are open, whatever the driver still does with them.
func (d *lines) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.open {
		_ = c.Close()
	}
}

// line is an open connection, which is forgotten when it is closed.
type line struct {
	net.Conn

	of *lines
}

// Close forgets it.
func (c *line) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// dialer opens the lines of one connection of the driver: one, or a second one where the first server names another,
// and one to SQL Server Browser. Each is closed when ctx ends: the driver heeds no context while it logs in.
type dialer struct {
	ctx context.Context
	of  *lines

	mu     sync.Mutex
	newest net.Conn
	keep   []func() bool
}

// HostName says that this dialer looks up the names of hosts itself, which the driver does without a context.
func (*dialer) HostName() string { return "" }

// DialContext opens a line.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.of.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest = c
	d.keep = append(d.keep, context.AfterFunc(d.ctx, func() { _ = c.Close() }))
	return c, nil
}

// release lets the lines outlive ctx, and returns the newest one. It reports false if they are closed.
func (d *dialer) release() (net.Conn, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	open := true
	for _, stop := range d.keep {
		open = stop() && open
	}
	return d.newest, open
}
