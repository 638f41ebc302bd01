package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

func TestOnlyADNSThatIsDownIsWaitedFor(t *testing.T) {
	down := fmt.Errorf("mongo: open: uri: %w", &net.DNSError{Err: "server misbehaving", Name: "db.example", IsTemporary: true})
	slow := fmt.Errorf("mongo: open: look up db.example: %w", &net.DNSError{Err: "i/o timeout", Name: "db.example", IsTimeout: true})
	unknown := &net.DNSError{Err: "no such host", Name: "db.example", IsNotFound: true}
	for name, c := range map[string]struct {
		errs    []error
		want    error
		reports int
	}{
		"up":                       {nil, nil, 0},
		"down for a while":         {[]error{down, slow, down}, nil, 3},
		"down, and no such name":   {[]error{down, unknown}, unknown, 1},
		"denied":                   {[]error{store.ErrDenied}, store.ErrDenied, 0},
		"not there, then anything": {[]error{store.ErrMissing, down}, store.ErrMissing, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, reports, tries := time.Now(), 0, 0
				l, err := openPatiently(t.Context(), func(error) { reports++ }, func(context.Context) (store.Ledger, error) {
					if tries++; tries <= len(c.errs) {
						return nil, c.errs[tries-1]
					}
					return memory.New(memory.Options{}), nil
				})
				if !errors.Is(err, c.want) || (l == nil) != (c.want != nil) || reports != c.reports {
					t.Errorf("openPatiently() = %v, %v after %d reports, want %v after %d", l, err, reports, c.want, c.reports)
				}
				if took := time.Since(began); took != time.Duration(c.reports)*openAgain {
					t.Errorf("openPatiently() took %v, want %v between tries", took, openAgain)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := openPatiently(ctx, func(error) {}, func(context.Context) (store.Ledger, error) { return nil, down }); !errors.Is(err, down) {
			t.Errorf("openPatiently() when interrupted = %v, want what was in the way", err)
		}
	})
}

// The last words of run may have no reader, as in a terminal after Ctrl-S.
func TestAHurriedWriterWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		h, began := &hurried{Writer: w}, time.Now()
		for range 3 {
			if n, err := h.Write([]byte("leasectl: why\n")); n != 14 || err != nil {
				t.Errorf("Write() = %d, %v", n, err)
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("three writes to a pipe that nobody reads took %v, want a second", took)
		}
		_ = r.Close()
	})
}
