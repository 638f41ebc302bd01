package mysql

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"syscall"
	"time"
)

// dialer opens network connections, and knows those that are open.
type dialer struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// dial opens one. It notices within half a minute that the other side has gone.
func (d *dialer) dial(ctx context.Context, network, address string) (*line, error) {
	own := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	c, err := own.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
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
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.open {
		_ = c.Close()
	}
}

// mostGreeting is how many bytes of a connection are kept: more than any greeting has up to its connection id.
const mostGreeting = 256

// line is an open connection, which is forgotten when it is closed.
type line struct {
	net.Conn

	of *dialer
	// greeting is the beginning of what the server sends first. The driver reads it before it gives out the connection.
	greeting []byte
}

// Read keeps the greeting.
func (c *line) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if room := mostGreeting - len(c.greeting); room > 0 {
		c.greeting = append(c.greeting, p[:min(n, room)]...)
	}
	return n, err
}

// greeted is the id that the greeting gives the connection, or false if it can't be read. It is that of the server's
// session, unless a proxy is in between, which gives out its own. The packet has a header of 4 bytes, the protocol's
// version 10, the server's version with a NUL after it, and the id in 4 bytes:
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_v10.html
func (c *line) greeted() (uint32, bool) {
	const header = 4
	if len(c.greeting) < header+1 || c.greeting[header] != 10 {
		return 0, false
	}
	rest := c.greeting[header+1:]
	end := bytes.IndexByte(rest, 0)
	if end < 0 || len(rest) < end+5 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(rest[end+1:]), true
}

// SyscallConn lets the driver see, before a statement, whether the other side has closed.
func (c *line) SyscallConn() (syscall.RawConn, error) {
	own, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, syscall.EINVAL
	}
	return own.SyscallConn()
}

// Close forgets it.
func (c *line) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
