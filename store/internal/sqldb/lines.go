package sqldb

import (
	"context"
	"net"
	"sync"
	"time"
)

// Lines are the network connections that are open.
type Lines struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// Dial opens one. It notices within half a minute that the other side has gone. A name with several addresses, as that of an
// availability group's listener, gets a part of the limit for each.
func (l *Lines) Dial(ctx context.Context, network, address string, limit time.Duration) (*Line, error) {
	d := &net.Dialer{Timeout: limit, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return l.keep(c)
}

// keep notes one that was opened, or closes it if the ledger is closed.
func (l *Lines) keep(c net.Conn) (*Line, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	if l.open == nil {
		l.open = map[net.Conn]struct{}{}
	}
	l.open[c] = struct{}{}
	return &Line{c, l}, nil
}

// close closes those that are open, whatever the driver still does with them.
func (l *Lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for c := range l.open {
		_ = c.Close()
	}
}

// Line is an open connection, which is forgotten when it is closed.
type Line struct {
	net.Conn

	of *Lines
}

// Close forgets it.
func (l *Line) Close() error {
	l.of.mu.Lock()
	delete(l.of.open, l.Conn)
	l.of.mu.Unlock()
	return l.Conn.Close()
}
