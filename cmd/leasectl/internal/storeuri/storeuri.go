// Package storeuri opens the store that --store or LEASECTL_STORE names.
//
// The forms are in the documentation of the command. Keys of Azure Cosmos DB come
// from the environment.
package storeuri

import (
	"cmp"
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
	if err == nil && t.Scheme == Cosmos {
		return cosmosTarget(t, getenv)
	}
	return t, err
}

// parse reads the text alone.
func parse(text string) (Target, error) {
	scheme, rest, found := strings.Cut(text, ":")
	if text == "" || !found {
		return Target{}, errors.New("has no scheme: use " + Forms)
	}
	switch scheme {
	case SQLite:
		return sqliteTarget(rest)
	case MongoDB, "mongodb+srv":
		return Target{Scheme: scheme, Shown: mongo.Redact(text), uri: text}, nil
	case Cosmos:
		if !strings.HasPrefix(rest, "//") {
			return Target{}, errors.New("cosmos: write cosmos://ACCOUNT/DATABASE/CONTAINER")
		}
		return Target{Scheme: scheme, Shown: cosmos.Redact(text), uri: text}, nil
	}
	if !plainScheme(scheme) {
		return Target{}, errors.New("has no known scheme: use " + Forms)
	}
	return Target{}, fmt.Errorf("scheme %q is unknown: use %s", scheme, Forms)
}

// sqliteTarget reads what follows sqlite:.
func sqliteTarget(text string) (Target, error) {
	path, options, err := sqliteOptions(text)
	if err != nil {
		return Target{}, err
	}
	if name, ok := strings.CutPrefix(path, "//"); ok {
		name = cmp.Or(strings.TrimLeft(name, "/"), "x.db")
		return Target{}, fmt.Errorf("write sqlite:%s for a relative path, sqlite:/%s for an absolute one", name, name)
	}
	switch {
	case path == "":
		return Target{}, errors.New("sqlite: has no path: use sqlite:PATH")
	case strings.Contains(path, ":memory:"):
		return Target{}, errors.New("a ledger in memory can't be shared by processes: name a file")
	}
	return Target{Scheme: SQLite, Shown: "sqlite:" + text, path: path, unsafeFileSystem: options != ""}, nil
}

// unsafeFileSystem is the one option of a SQLite file.
const unsafeFileSystem = "?unsafeFileSystem=true"

// sqliteOptions cuts the option off a path. A question mark without an equals sign
// after it is part of the path.
func sqliteOptions(text string) (path, options string, err error) {
	i := strings.LastIndex(text, "?")
	if i < 0 || !strings.Contains(text[i:], "=") {
		return text, "", nil
	}
	if text[i:] != unsafeFileSystem {
		return "", "", fmt.Errorf("sqlite: %q is unknown: the only option is %s", text[i:], unsafeFileSystem)
	}
	return text[:i], text[i:], nil
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
		l, err := sqlite.Open(ctx, sqlite.Options{Path: t.path, ReadOnly: readOnly, UnsafeFileSystem: t.unsafeFileSystem})
		if err != nil {
			return nil, err
		}
		return l, nil
	case Cosmos:
		return t.openCosmos(ctx)
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

// Close closes a ledger also when the context has ended.
func Close(ctx context.Context, l store.Ledger) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return l.Close(ctx)
}
