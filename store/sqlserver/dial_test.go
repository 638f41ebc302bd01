//go:build sqlserver

package sqlserver

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

func TestALineIsOpenedByNameAndClosedWithTheLedger(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(silent(t))
	must(t, "SplitHostPort()", err)
	d := &lines{}
	// The name has several addresses on most machines, of which one answers.
	c, err := d.dial(within(t), "tcp", net.JoinHostPort("localhost", port))
	must(t, "dial()", err)
	d.close()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read() of a line after close() = %v, want %v", err, net.ErrClosed)
	}
	if _, err := d.dial(within(t), "tcp", net.JoinHostPort("127.0.0.1", port)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dial() after close() = %v, want %v", err, net.ErrClosed)
	}
	_ = c.Close()
	if len(d.open) > 0 {
		t.Errorf("%d lines are kept, want none", len(d.open))
	}
}

func TestAnAddressThatAnswersNothingIsAnError(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	address := l.Addr().String()
	must(t, "Close()", l.Close())
	for _, at := range []string{address, "127.0.0.1", "no-such-name.invalid:1433"} {
		if _, err := (&lines{}).dial(within(t), "tcp", at); err == nil {
			t.Errorf("dial(%s) = nil, want an error", at)
		}
	}
}

func TestALineOutlivesItsConnectingUnlessThatWasGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := &dialer{ctx: ctx, of: &lines{}}
	address := silent(t)
	first, err := d.DialContext(within(t), "tcp", address)
	must(t, "DialContext()", err)
	newest, open := d.release()
	cancel()
	if !open || newest != first {
		t.Errorf("release() = %v, %v, want the line", newest, open)
	}
	_ = first.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := first.Read(make([]byte, 1)); errors.Is(err, net.ErrClosed) {
		t.Errorf("Read() of a line that was released = %v, want it open", err)
	}
	late := &dialer{ctx: ctx, of: &lines{}}
	c, err := late.DialContext(within(t), "tcp", address)
	must(t, "DialContext()", err)
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read() of a line whose connecting was given up = %v, want %v", err, net.ErrClosed)
	}
	if _, open := late.release(); open {
		t.Error("release() of it = true, want false")
	}
}
