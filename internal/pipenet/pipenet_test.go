package pipenet_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/internal/pipenet"
)

func TestAnAddressRefusesUnlessSomethingListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := pipenet.New()
		addr := n.Address()
		refused := func(when string) {
			t.Helper()
			if conn, err := n.DialContext(t.Context(), "tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("DialContext() %s = %v, %v, want %v", when, conn, err, syscall.ECONNREFUSED)
			}
		}
		refused("before it listens")
		l := n.Listen(addr)
		if got := l.Addr().String(); got != addr || n.Address() == addr {
			t.Errorf("Addr() = %s, want %s, which isn't given out again", got, addr)
		}
		silent, err := n.DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = silent.SetReadDeadline(time.Now().Add(time.Hour))
		if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read() from what nobody has accepted = %v, want a time-out", err)
		}
		go func() {
			conn, _ := l.Accept()
			_, _ = io.WriteString(conn, "hi")
		}()
		_ = silent.SetReadDeadline(time.Time{})
		hi := make([]byte, 2)
		if _, err := io.ReadFull(silent, hi); err != nil || string(hi) != "hi" {
			t.Errorf("read %q, %v once it is accepted", hi, err)
		}
		waiting, err := n.DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if first, second := l.Close(), l.Close(); first != nil || !errors.Is(second, net.ErrClosed) {
			t.Errorf("Close(), twice = %v, %v", first, second)
		}
		if _, err := waiting.Read(hi); err != io.EOF {
			t.Errorf("Read() from what was never accepted = %v after Close(), want %v", err, io.EOF)
		}
		if conn, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept() after Close() = %v, %v", conn, err)
		}
		refused("after Close()")
	})
}
