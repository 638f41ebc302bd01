package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
)

func TestAURINamesAFileAsItIsWritten(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]Options{
		"sqlite:x.db":                                {Path: "x.db"},
		"sqlite:/srv/a b%20.db":                      {Path: "/srv/a b%20.db"},
		"sqlite:/srv/x.db?unsafeFileSystem=true":     {Path: "/srv/x.db", UnsafeFileSystem: true},
		"sqlite:/srv/what?.db":                       {Path: "/srv/what?.db"},
		"sqlite:/srv/what?.db?unsafeFileSystem=true": {Path: "/srv/what?.db", UnsafeFileSystem: true},
		"sqlite:/srv/a=b.db":                         {Path: "/srv/a=b.db"},
	} {
		if got, err := ParseURI(uri); err != nil || got != want || got.URI() != uri {
			t.Errorf("ParseURI(%s) = %+v, %v, want %+v, and the same URI of it", uri, got, err, want)
		}
	}
	for uri, says := range map[string]string{
		"sqlite:":                            "has no path",
		"sqlite:?unsafeFileSystem=true":      "has no path",
		"sqlite:x.db?unsafeFileSystem=false": "the only option is ?unsafeFileSystem=true",
		"sqlite:x.db?mode=ro":                `"?mode=…" is unknown`,
		"sqlite://x.db":                      "write sqlite:x.db for a relative path, sqlite:/x.db for an absolute one",
		"sqlite:///srv/x.db":                 "sqlite:/srv/x.db for an absolute one",
		"sqlite:file::memory:":               "name a file",
		"x.db":                               "use sqlite:PATH",
	} {
		if _, err := ParseURI(uri); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ParseURI(%s) = %v, want %q", uri, err, says)
		}
	}
}

func TestAFileIsOpenedByItsURI(t *testing.T) {
	t.Parallel()
	uri := scheme + filepath.Join(t.TempDir(), "x.db")
	if _, err := store.Open(t.Context(), uri, store.OpenOptions{ReadOnly: true}); err == nil || !strings.Contains(err.Error(), "x.db") {
		t.Errorf("store.Open() of a missing file for reading = %v, want that it is missing", err)
	}
	l, err := store.Open(t.Context(), uri, store.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Init(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := store.Open(t.Context(), "sqlite:", store.OpenOptions{}); err == nil || err.Error() != "sqlite: open: has no path: use sqlite:PATH" {
		t.Errorf("store.Open(sqlite:) = %v", err)
	}
}

// SQLite as such has no keys, but encrypting ones have, and are given them in a URI.
func TestTheValueOfAnUnknownOptionIsNotShown(t *testing.T) {
	t.Parallel()
	const uri = "sqlite:/srv/x.db?cipher=a&key=c4naryS3cret"
	_, err := store.Open(t.Context(), uri, store.OpenOptions{})
	if err == nil || strings.Contains(err.Error(), "c4nary") || !strings.Contains(err.Error(), `"?cipher=…" is unknown`) {
		t.Errorf("store.Open(%s) = %v, want an error without the key", uri, err)
	}
	for uri, want := range map[string]string{uri: "sqlite:/srv/x.db?***", "sqlite:/srv/what?.db": "sqlite:/srv/what?.db", "sqlite:x.db?unsafeFileSystem=true": "sqlite:x.db?unsafeFileSystem=true"} {
		if got := store.Redact(uri); got != want {
			t.Errorf("store.Redact(%s) = %s, want %s", uri, got, want)
		}
	}
}
