// Package listen answers HTTP requests about a worker while it leases: probes, its status and
// its metrics.
//
//	/healthz   200, or 503 if only a restart helps
//	/readyz    200, or 503 if the worker can't tell who leads
//	/status    what the worker does, as JSON
//	/metrics   for Prometheus
//	/page/     the page about the whole store, if it is wanted
//
// Nobody who asks can hold the worker up: requests are answered on goroutines of their own, a
// client that is slow is cut off within seconds, or when many others come, and the end waits for none.
package listen

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

// loopback is where a port without a host listens.
const loopback = "127.0.0.1"

// Address reads an address: HOST:PORT, or PORT or :PORT for the loopback interface alone. Port 0
// is any that is free.
func Address(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil && !strings.Contains(text, ":") {
		host, port, err = "", text, nil
	}
	if err != nil {
		return "", errors.New("must be a port, such as 9090, or HOST:PORT, such as 0.0.0.0:9090 or [::]:9090")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", errors.New("must have a port from 0 to 65535")
	}
	if host == "" {
		host = loopback
	}
	return net.JoinHostPort(host, port), nil
}

// Open listens at an address of [Address], for so many clients at once: of all, and of one address. An error is an
// [exit.Error].
func Open(address string, most, ofOne int) (net.Listener, error) {
	l, err := listens(address)
	if err != nil {
		return nil, err
	}
	return &bounded{Listener: l, most: most, ofOne: ofOne}, nil
}

// listens is Open without bounds.
func listens(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	why := err
	if e, ok := errors.AsType[*net.OpError](err); ok {
		why = e.Err
	}
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		why = e.Err
	}
	failed := exit.With(exit.Failure, fmt.Errorf("--listen %q: %w", address, why))
	failed.Try = "another port or host"
	return nil, failed
}

// Bounds of the clients that are connected at once: of all, and of one address.
const (
	mostConnections = 256
	mostOfOne       = 64
)

// bounded is a listener that takes every client, and hangs up on the oldest for one too many: clients that stay without
// asking keep no probe from its answer, and one address takes no place from the others.
type bounded struct {
	net.Listener

	most, ofOne int

	mu     sync.Mutex
	newest []net.Conn // oldest first
}

// Accept waits for the next client.
func (b *bounded) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	oldest, of := 0, 0
	for i, o := range b.newest {
		if host(o) != host(c) {
			continue
		}
		if of++; of == 1 {
			oldest = i
		}
	}
	if of < b.ofOne {
		oldest = 0
	}
	if of >= b.ofOne || len(b.newest) >= b.most {
		_ = b.newest[oldest].Close()
		b.newest = slices.Delete(b.newest, oldest, oldest+1)
	}
	b.newest = append(b.newest, c)
	return &client{Conn: c, of: b}, nil
}

// client is a connection that makes room when it ends: a stream that stays isn't cut off for those that came after it, and
// have gone.
type client struct {
	net.Conn

	of *bounded
}

// Close hangs up.
func (c *client) Close() error {
	c.of.mu.Lock()
	if i := slices.Index(c.of.newest, c.Conn); i >= 0 {
		c.of.newest = slices.Delete(c.of.newest, i, i+1)
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// host is the address of a client without its port.
func host(c net.Conn) string {
	h, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	return h
}
