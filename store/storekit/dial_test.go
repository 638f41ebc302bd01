package storekit

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

func TestConnectionsEndWithTheirLife(t *testing.T) {
	t.Parallel()
	life, end := context.WithCancel(t.Context())
	dial := DialUntil(life, func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		return near, nil
	})
	var conns []net.Conn
	for range 2 {
		c, err := dial(t.Context(), "tcp", "here")
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	if err := conns[0].Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := conns[1].Write([]byte("x")); err != nil {
		t.Errorf("Write() = %v, want that the other connection goes on", err)
	}
	end()
	if _, err := conns[1].Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Read() after the end = %v, want that it is closed", err)
	}
	late, err := dial(t.Context(), "tcp", "here")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Read() of a connection that was made after the end = %v, want that it is closed", err)
	}
	broken := DialUntil(life, func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF })
	if c, err := broken(t.Context(), "tcp", "here"); c != nil || !errors.Is(err, io.EOF) {
		t.Errorf("a Dialer that fails = %v, %v, want its error", c, err)
	}
}
