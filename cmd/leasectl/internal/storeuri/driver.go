package storeuri

import (
	"context"
	"errors"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/store"
	_ "github.com/slotlease/slotlease/store/azblob" // the schemes
	_ "github.com/slotlease/slotlease/store/mysql"
	_ "github.com/slotlease/slotlease/store/postgres"
	_ "github.com/slotlease/slotlease/store/redis"
	_ "github.com/slotlease/slotlease/store/s3"
	"github.com/slotlease/slotlease/workerlease"
)

// openDriver makes a ledger of a store that is registered. Those wait for no connection, so that their errors are
// mistakes in the URI or the environment, unless they say otherwise.
func (t Target) openDriver(ctx context.Context, readOnly bool) (store.Ledger, error) {
	l, err := t.driver.Open(ctx, t.uri, store.OpenOptions{ReadOnly: readOnly, AppName: "leasectl", Clock: workerlease.NewSystemClock(), Getenv: t.getenv})
	if err == nil {
		return l, nil
	}
	for _, known := range []error{store.ErrRefused, store.ErrDenied, store.ErrMissing, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return nil, err
		}
	}
	return nil, exit.BadUsage(t.driver.Form+", as in leasectl --help", err)
}

// Registered reports that the store is one that is registered, in place of one that leasectl knows by itself.
func (t Target) Registered() bool { return t.driver.Open != nil }
