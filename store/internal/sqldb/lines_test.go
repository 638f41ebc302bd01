package sqldb

import (
	"errors"
	"net"
	"testing"
)

func TestLinesAreForgottenWhenTheyAreClosedAndCloseWithTheLedger(t *testing.T) {
	t.Parallel()
	var l Lines
	pair := func() (*Line, error) {
		own, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		return l.keep(own)
	}
	first, err := pair()
	second, errToo := pair()
	if err != nil || errToo != nil {
		t.Fatalf("Keep() = %v, %v, want nil", err, errToo)
	}
	if err := first.Close(); err != nil || len(l.open) != 1 {
		t.Errorf("Close() = %v, and %d lines are kept, want 1", err, len(l.open))
	}
	l.close()
	if _, err := second.Read(make([]byte, 1)); err == nil {
		t.Error("Read() of a line after close() = nil, want an error")
	}
	if _, err := pair(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Keep() after close() = %v, want %v", err, net.ErrClosed)
	}
	if err := second.Close(); err != nil || len(l.open) != 0 {
		t.Errorf("Close() = %v, and %d lines are kept, want none", err, len(l.open))
	}
}
