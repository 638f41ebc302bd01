// Package pipenet is a network in memory, for tests: pipes instead of sockets, so that in a bubble testing/synctest sees when
// everything waits, and time there goes on.
package pipenet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// Network gives out addresses of this machine that its own dialer alone reaches: 16 million, on hosts where no socket listens.
// Make one with [New].
type Network struct {
	mu    sync.Mutex
	given map[string]*listener // nil: nothing listens there
}

// New makes a network.
func New() *Network { return &Network{given: map[string]*listener{}} }

// Address is a new one, at which nothing listens: a connection is refused.
func (n *Network) Address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := len(n.given) + 1<<16 // Servers of tests are on 127.0.0.1.
	addr := fmt.Sprintf("127.%d.%d.%d:27017", next>>16, next>>8&255, next&255)
	n.given[addr] = nil
	return addr
}

// Listen listens at an address of the network. As with a socket, a connection is there before it is accepted, up to a thousand of
// them; who accepts none is silent. Close refuses from then on, and breaks what nobody has accepted.
func (n *Network) Listen(addr string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{net: n, addr: addr, conns: make(chan net.Conn, 1000)}
	n.given[addr] = l
	return l
}

// DialContext connects to an address. One that the network hasn't given out is reached by a socket.
func (n *Network) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l, ours := n.given[addr]
	switch {
	case !ours:
		var sockets net.Dialer
		n.mu.Unlock()
		defer n.mu.Lock()
		return sockets.DialContext(ctx, network, addr)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case l == nil || len(l.conns) == cap(l.conns):
		return nil, &net.OpError{Op: "dial", Net: network, Addr: address(addr), Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	l.conns <- far
	return near, nil
}

// listener is what listens at one address. Its channel is filled, and closed, under the network's lock.
type listener struct {
	net   *Network
	addr  string
	conns chan net.Conn
}

func (l *listener) Accept() (net.Conn, error) {
	if conn, ok := <-l.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (l *listener) Close() error {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.net.given[l.addr] != l {
		return net.ErrClosed
	}
	l.net.given[l.addr] = nil
	close(l.conns)
	for conn := range l.conns {
		_ = conn.Close()
	}
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.addr) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
