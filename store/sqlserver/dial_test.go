//go:build sqlserver

package sqlserver

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/internal/sqldb"
)

func TestALineOutlivesItsConnectingUnlessThatWasGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := &dialer{ctx: ctx, of: &sqldb.Lines{}}
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
	late := &dialer{ctx: ctx, of: &sqldb.Lines{}}
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
