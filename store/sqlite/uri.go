package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// scheme of a URI, with its colon.
const scheme = "sqlite:"

func init() {
	store.Register("sqlite", store.Driver{
		Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
			options, err := ParseURI(uri)
			if err != nil {
				return nil, fmt.Errorf("sqlite: open: %w", err)
			}
			options.ReadOnly, options.Clock = o.ReadOnly, o.Clock
			l, err := Open(ctx, options)
			if err != nil {
				return nil, err
			}
			return l, nil
		},
		Redact: redact,
		Form:   "sqlite:PATH",
	})
}

// redact is a URI as it may be shown. A well-formed one has no secret; of an option that doesn't exist, the value may be one.
func redact(uri string) string {
	i := strings.LastIndex(uri, "?")
	if _, err := ParseURI(uri); err == nil || i < 0 || !strings.Contains(uri[i:], "=") {
		return uri
	}
	return uri[:i] + "?***"
}

// unsafeFileSystem is the one option of a URI.
const unsafeFileSystem = "?unsafeFileSystem=true"

// ParseURI reads the URI of a file, sqlite:PATH: sqlite:x.db is relative, sqlite:/x.db absolute. The path is taken as
// it is written, without escapes. The one option is ?unsafeFileSystem=true, which is the field of that name. A
// question mark without an equals sign after it is part of the path.
func ParseURI(uri string) (Options, error) {
	path, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return Options{}, errors.New("has another scheme: use sqlite:PATH")
	}
	var o Options
	if i := strings.LastIndex(path, "?"); i >= 0 && strings.Contains(path[i:], "=") {
		if path[i:] != unsafeFileSystem {
			name, _, _ := strings.Cut(path[i:], "=") // The value may be meant as a key.
			return Options{}, fmt.Errorf("%q is unknown: the only option is %s", name+"=…", unsafeFileSystem)
		}
		path, o.UnsafeFileSystem = path[:i], true
	}
	if name, ok := strings.CutPrefix(path, "//"); ok {
		name = cmp.Or(strings.TrimLeft(name, "/"), "x.db")
		return Options{}, fmt.Errorf("write sqlite:%s for a relative path, sqlite:/%s for an absolute one", name, name)
	}
	switch {
	case path == "":
		return Options{}, errors.New("has no path: use sqlite:PATH")
	case strings.Contains(path, ":memory:"):
		return Options{}, errors.New("a ledger in memory can't be shared by processes: name a file")
	}
	o.Path = path
	return o, nil
}

// URI is how a URI names the file of these options, and its file system.
func (o Options) URI() string {
	if o.UnsafeFileSystem {
		return scheme + o.Path + unsafeFileSystem
	}
	return scheme + o.Path
}
