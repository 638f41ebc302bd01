// Package storeuri opens the store that --store or LEASECTL_STORE names.
//
// The forms are in the documentation of the command. Keys of Azure Cosmos DB come
// from the environment.
package storeuri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
)

// Parse reads the text that names a store, and from the environment what else it
// takes to open it. Its errors quote nothing that could be secret.
func Parse(text string, getenv func(string) string) (Target, error) {
	t, err := parse(text)
	return t.with(getenv, err)
}

// with completes a target from the environment.
func (t Target) with(getenv func(string) string, err error) (Target, error) {
	if err == nil && t.Scheme == Cosmos {
		return cosmosTarget(t, getenv)
	}
	t.getenv = getenv
	return t, err
}

// parse reads the text alone.
func parse(text string) (Target, error) {
	scheme, rest, found := strings.Cut(text, ":")
	if text == "" || !found {
		return Target{}, errors.New("has no scheme: use " + Forms())
	}
	switch scheme {
	case SQLite:
		return sqliteTarget(text)
	case MongoDB, "mongodb+srv":
		return Target{Scheme: scheme, Shown: mongo.Redact(text), uri: text}, nil
	case Cosmos:
		if !strings.HasPrefix(rest, "//") {
			return Target{}, errors.New("cosmos: write cosmos://ACCOUNT/DATABASE/CONTAINER")
		}
		return Target{Scheme: scheme, Shown: cosmos.Redact(text), uri: text}, nil
	}
	if d, ok := store.DriverOf(text); ok {
		return Target{Scheme: scheme, Shown: d.Redact(text), uri: text, driver: d}, nil
	}
	if a, ok := absent[scheme]; ok {
		return Target{}, &a
	}
	if !plainScheme(scheme) {
		return Target{}, errors.New("has no known scheme: use " + Forms())
	}
	return Target{}, fmt.Errorf("scheme %q is unknown: use %s", scheme, Forms())
}

// sqliteTarget reads the URI of a file.
func sqliteTarget(uri string) (Target, error) {
	o, err := sqlite.ParseURI(uri)
	if err != nil {
		return Target{}, fmt.Errorf("sqlite: %w", err)
	}
	return Target{Scheme: SQLite, Shown: uri, file: o}, nil
}

// plainScheme reports whether a text can only be meant as a scheme, so that it
// may be shown.
func plainScheme(s string) bool {
	for _, r := range s {
		if r != '+' && (r < 'a' || r > 'z') {
			return false
		}
	}
	return s != "" && len(s) <= 16
}

// Open makes a ledger of the target. A reader never creates anything. An error that
// is a mistake in the URI is an [exit.Error].
func (t Target) Open(ctx context.Context, readOnly bool) (store.Ledger, error) {
	switch t.Scheme {
	case SQLite:
		o := t.file
		o.ReadOnly = readOnly
		l, err := sqlite.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		return l, nil
	case Cosmos:
		return t.openCosmos(ctx)
	}
	if t.driver.Open != nil {
		return t.openDriver(ctx, readOnly)
	}
	l, err := mongo.Open(ctx, mongo.Options{URI: t.uri, AppName: "leasectl", Clock: workerlease.NewSystemClock()})
	if err != nil {
		return nil, badURI("mongodb://HOST/DATABASE?collection=NAME, or mongodb+srv://…, as in leasectl --help", err)
	}
	return l, nil
}

// OpenToLease makes a ledger for a worker. The first operation creates a SQLite file
// that is missing or empty, as it does for users of the library; isNew reports that,
// because workers that don't name the same file share no lease.
func (t Target) OpenToLease(ctx context.Context) (l store.Ledger, isNew bool, err error) {
	if t.Scheme == SQLite {
		looker, err := t.Open(ctx, true)
		switch {
		case errors.Is(err, store.ErrMissing):
			isNew = true
		case err != nil:
			return nil, false, err
		default:
			if err := looker.Close(ctx); err != nil {
				return nil, false, err
			}
		}
	}
	l, err = t.Open(ctx, false)
	return l, isNew, err
}

// badURI is the error of a URI that can't be used. Nothing was asked of a server
// yet, but for the DNS. form is what to try.
func badURI(form string, err error) error {
	_, dns := errors.AsType[*net.DNSError](err)
	if dns || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return exit.BadUsage(form, err)
}

// Close closes a ledger also when the context has ended. It waits for 3 s at most: the operations end at once, but a busy
// machine may take its time to notice.
func Close(ctx context.Context, l store.Ledger) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	return l.Close(ctx)
}
