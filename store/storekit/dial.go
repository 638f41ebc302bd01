package storekit

import (
	"context"
	"net"
)

// Dialer makes connections, as an http.Transport's DialContext does.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// DialUntil returns a Dialer whose connections are closed at the end of life. A store whose driver is Go's HTTP client
// needs it: CloseIdleConnections doesn't reach a connection that was being made for a request which was given up.
func DialUntil(life context.Context, dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return ending{conn, context.AfterFunc(life, func() { _ = conn.Close() })}, nil
	}
}

// ending is a connection that is closed at the end of a context, which no longer knows it once it is closed.
type ending struct {
	net.Conn

	forget func() bool
}

func (c ending) Close() error {
	c.forget()
	return c.Conn.Close()
}
