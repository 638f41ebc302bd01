package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/store/sqlite"
)

// storeVariable is the environment variable that names the store.
const storeVariable = "LEASECTL_STORE"

const storeForms = "sqlite:PATH, mongodb://…/DATABASE?collection=NAME, mongodb+srv://…, or cosmos://ACCOUNT/DATABASE/CONTAINER"

// target is a store that was chosen, not opened.
type target struct {
	scheme string
	// shown is the store as it may be shown.
	shown string
	// path of a SQLite file.
	path string
	uri  string
	// key or connection string of a Cosmos DB account, if there is one.
	key, connection string
}

// target reads --store, or the environment variable. What is wrong is noted.
func (a *app) target(c *cobra.Command) target {
	from, text := "--store", a.store
	if !c.Flags().Changed("store") {
		from, text = storeVariable, a.getenv(storeVariable)
	}
	if text == "" && from == storeVariable {
		a.bad("no store: name one with --store or %s", storeVariable)
		a.try = "--store sqlite:leases.db, or export " + storeVariable + "=mongodb://…"
		return target{}
	}
	t, err := parseTarget(text)
	if err == nil && t.scheme == "cosmos" {
		t, err = a.cosmosTarget(t)
	}
	if err != nil {
		a.bad("%s: %w", from, err)
	}
	return t
}

// parseTarget reads the text that names a store. Its errors quote nothing that
// could be secret.
func parseTarget(text string) (target, error) {
	scheme, rest, found := strings.Cut(text, ":")
	if text == "" || !found {
		return target{}, errors.New("has no scheme: use " + storeForms)
	}
	switch scheme {
	case "sqlite":
		return sqliteTarget(rest)
	case "mongodb", "mongodb+srv":
		return target{scheme: scheme, shown: mongo.Redact(text), uri: text}, nil
	case "cosmos":
		if !strings.HasPrefix(rest, "//") {
			return target{}, errors.New("cosmos: write cosmos://ACCOUNT/DATABASE/CONTAINER")
		}
		return target{scheme: scheme, shown: cosmos.Redact(text), uri: text}, nil
	}
	if !plainScheme(scheme) {
		return target{}, errors.New("has no known scheme: use " + storeForms)
	}
	return target{}, fmt.Errorf("scheme %q is unknown: use %s", scheme, storeForms)
}

// sqliteTarget reads what follows sqlite:.
func sqliteTarget(path string) (target, error) {
	if name, ok := strings.CutPrefix(path, "//"); ok {
		name = cmp.Or(strings.TrimLeft(name, "/"), "x.db")
		return target{}, fmt.Errorf("write sqlite:%s for a relative path, sqlite:/%s for an absolute one", name, name)
	}
	switch {
	case path == "":
		return target{}, errors.New("sqlite: has no path: use sqlite:PATH")
	case strings.Contains(path, ":memory:"):
		return target{}, errors.New("a ledger in memory can't be shared by processes: name a file")
	}
	return target{scheme: "sqlite", shown: "sqlite:" + path, path: path}, nil
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

// open makes a ledger of the target. A reader never creates anything.
func (t target) open(ctx context.Context, readOnly bool) (store.Ledger, error) {
	switch t.scheme {
	case "sqlite":
		l, err := sqlite.Open(ctx, sqlite.Options{Path: t.path, ReadOnly: readOnly})
		if err != nil {
			return nil, err
		}
		return l, nil
	case "cosmos":
		return t.openCosmos(ctx)
	}
	l, err := mongo.Open(ctx, mongo.Options{URI: t.uri, AppName: "leasectl"})
	if err != nil {
		return nil, badURI(err)
	}
	return l, nil
}

// badURI is the error of a URI that can't be used. Nothing was asked of a server
// yet, but for the DNS.
func badURI(err error) error {
	_, dns := errors.AsType[*net.DNSError](err)
	if dns || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return badUsage("", err)
}

// absolute is the path of a SQLite file that doesn't depend on the directory.
func (t target) absolute() string {
	if path, err := filepath.Abs(t.path); err == nil {
		return path
	}
	return t.path
}

// place is the store as it may be shown, wherever that is read.
func (t target) place() string {
	if t.scheme == "sqlite" {
		return "sqlite:" + t.absolute()
	}
	return t.shown
}

// refusal is what to do about a store that is refused, and why it is. SQLite's own
// words for a file that it can't read would repeat ours.
func (t target) refusal(err error) (try string, problem error) {
	e, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return "", brief(err)
	}
	switch e.Code() & 0xff {
	case code.SQLITE_NOTADB:
		return "choose another file", fmt.Errorf("%s: %w: not a SQLite database", t.place(), store.ErrRefused)
	case code.SQLITE_CORRUPT:
		return "stop all its workers first, then remove it (a new ledger starts)",
			fmt.Errorf("%s: %w: the file is corrupt", t.place(), store.ErrRefused)
	}
	return "", err
}

func (t target) tryDenied() string {
	switch t.scheme {
	case "sqlite":
		path := t.absolute()
		return "run as a user who may write (to inspect: read) the directory " + filepath.Dir(path) + " and the file " + path
	case "cosmos":
		if t.key == "" && t.connection == "" {
			return "set COSMOS_KEY or COSMOS_CONNECTION_STRING, or sign in (az login); an identity needs a role on the account, and can't create containers"
		}
		return "check the key in " + t.keyFrom() + ", and the account's firewall"
	}
	return "check user, password and authSource in the URI, and the user's role (readWrite)"
}

func (t target) tryMissing() string {
	if t.scheme == "sqlite" {
		dir := filepath.Dir(t.absolute())
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return "create the directory " + dir + " first"
		}
	}
	return "leasectl init --store " + quoted(t.shown)
}

// quoted is a text as a shell takes it for one word.
func quoted(text string) string {
	if strings.ContainsAny(text, " \t?&*;|<>()$`\"'\\#~![]{}") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}
