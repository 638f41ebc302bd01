package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/slotlease/slotlease/store"
)

// openTimeout bounds how long run opens its store, and openAgain is how long it waits before
// it tries again.
const (
	openTimeout = 5 * time.Second
	openAgain   = 2 * time.Second
)

// openPatiently opens a ledger, and tries again as long as only the DNS is in the way, which a
// mongodb+srv URI needs to find its servers. report gets each failure of that kind. It returns
// the last error if ctx ends.
func openPatiently(ctx context.Context, report func(error), open func(context.Context) (store.Ledger, error)) (store.Ledger, error) {
	again := time.NewTicker(openAgain)
	defer again.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, openTimeout)
		l, err := open(limited)
		cancel()
		if err == nil || !unresolved(err) || ctx.Err() != nil {
			return l, err
		}
		report(err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-again.C:
		}
	}
}

// unresolved reports that the DNS didn't answer. If it says that there is no such name,
// waiting doesn't help.
func unresolved(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && !e.IsNotFound
}
