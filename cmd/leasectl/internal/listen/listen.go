// Package listen answers HTTP requests about a worker while it leases: probes, its status and
// its metrics.
//
//	/healthz   200, or 503 if only a restart helps
//	/readyz    200, or 503 if the worker can't tell who leads
//	/status    what the worker does, as JSON
//	/metrics   for Prometheus
//
// Nobody who asks can hold the worker up: requests are answered on goroutines of their own, a
// client that is slow is cut off within seconds, and the end waits for none.
package listen

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

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

// open listens at an address of [Address].
func open(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return &bounded{Listener: l, free: make(chan struct{}, maxConnections)}, nil
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

// maxConnections bounds how many clients are connected at once. More are hung up on.
const maxConnections = 256

// bounded is a listener that hangs up on clients that are too many.
type bounded struct {
	net.Listener

	free chan struct{} // has one element for each connection
}

// Accept waits for the next client that is not one too many.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.free <- struct{}{}:
			return &counted{Conn: c, free: b.free}, nil
		default:
			_ = c.Close()
		}
	}
}
