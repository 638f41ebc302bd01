// Package storeuri opens the store that --store or LEASECTL_STORE names.
//
// The forms are in the documentation of the command. What a URI lacks, such as keys of cloud services, comes from the
// environment.
package storeuri

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/store"
	_ "github.com/slotlease/slotlease/store/mongo" // the schemes
	_ "github.com/slotlease/slotlease/store/mysql"
	_ "github.com/slotlease/slotlease/store/postgres"
	_ "github.com/slotlease/slotlease/store/redis"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
)

// Parse reads the text that names a store. What else it takes to open it comes from the environment. Its errors quote
// nothing that could be secret.
func Parse(text string, getenv func(string) string) (Target, error) {
	if err := store.CheckURI(text, slices.Collect(maps.Keys(absent))...); err != nil {
		return Target{}, &formError{err}
	}
	scheme, _, found := strings.Cut(text, ":")
	if text == "" || !found {
		return Target{}, errors.New("has no scheme: use " + Forms())
	}
	if d, ok := store.DriverOf(text); ok {
		t := Target{Scheme: scheme, Shown: d.Redact(text), uri: text, driver: d, getenv: getenv}
		if scheme != SQLite {
			return t, nil
		}
		var err error
		if t.file, err = sqlite.ParseURI(text); err != nil {
			return Target{}, fmt.Errorf("sqlite: %w", err)
		}
		t.Shown = text
		return t, nil
	}
	if a, ok := absent[scheme]; ok {
		return Target{}, &a
	}
	if !plainScheme(scheme) {
		return Target{}, errors.New("has no known scheme: use " + Forms())
	}
	return Target{}, fmt.Errorf("scheme %q is unknown: use %s", scheme, Forms())
}

// formError is a mistake of the whole text, and shows nothing of it.
type formError struct{ error }

// plainScheme reports whether a text can only be meant as a scheme, so that it
// may be shown.
func plainScheme(s string) bool {
	return s != "" && len(s) <= 16 && strings.Trim(s, "+abcdefghijklmnopqrstuvwxyz") == ""
}

// Open makes a ledger of the target. A reader never creates anything. Stores on servers wait for no connection, so that their
// errors are mistakes in the URI or the environment, unless they say otherwise: such a one is an [exit.Error].
func (t Target) Open(ctx context.Context, readOnly bool) (store.Ledger, error) {
	l, err := t.driver.Open(ctx, t.uri, store.OpenOptions{ReadOnly: readOnly, AppName: "leasectl", File: t.File, Clock: workerlease.NewSystemClock(), Getenv: t.getenv})
	if err == nil {
		return l, nil
	}
	_, dns := errors.AsType[*net.DNSError](err)
	known := []error{store.ErrRefused, store.ErrDenied, store.ErrMissing, context.Canceled, context.DeadlineExceeded}
	if dns || t.IsFile() || slices.ContainsFunc(known, func(of error) bool { return errors.Is(err, of) }) {
		return nil, err
	}
	return nil, exit.BadUsage(t.driver.Form+", as in leasectl --help", err)
}

// Billed reports that the store charges for each request.
func (t Target) Billed() bool { return t.driver.Billed }

// OpenToLease makes a ledger for a worker. The first operation creates a SQLite file
// that is missing or empty, as it does for users of the library; isNew reports that,
// because workers that don't name the same file share no lease.
func (t Target) OpenToLease(ctx context.Context) (l store.Ledger, isNew bool, err error) {
	if t.IsFile() {
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

// Examine lets a store examine itself, through the ledger that Open made of it. A SQLite file is also examined if
// Open refuses it, so that the ledger is nil; of others there is nothing to say then.
func (t Target) Examine(ctx context.Context, l store.Ledger) ([]store.Finding, error) {
	if t.IsFile() {
		return sqlite.Examine(ctx, sqlite.Options{Path: t.file.Path, UnsafeFileSystem: t.file.UnsafeFileSystem})
	}
	if l == nil {
		return nil, nil
	}
	if examine := store.Describe(l).Examine; examine != nil {
		return examine(ctx)
	}
	return nil, nil
}

// Close closes a ledger also when the context has ended. It waits for 3 s at most: the operations end at once, but a busy
// machine may take its time to notice.
func Close(ctx context.Context, l store.Ledger) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	return l.Close(ctx)
}
