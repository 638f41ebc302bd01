package storeuri

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store/cosmos"
)

func TestTheFileOfAStore(t *testing.T) {
	const uri = "mongodb://user:c4n4ry@host/jobs"
	for content, want := range map[string]string{
		uri:                                     uri,
		uri + "\n":                              uri,
		uri + "\r\n":                            uri,
		uri + "\n\n":                            uri,
		strings.Repeat("x", 64<<10):             strings.Repeat("x", 64<<10),
		"":                                      "is empty: it must have the URI of the store",
		"\n":                                    "is empty: it must have the URI of the store",
		uri + "\n" + uri:                        "has several lines: it must have the URI of the store alone",
		"mongodb://user:c4n4ry\x00@host/jobs":   "has a NUL byte: it is no text",
		strings.Repeat("c4n4ry", (64<<10)/6+1):  "has more than 64 KiB",
		uri + "\n" + strings.Repeat(" ", 70000): "has more than 64 KiB",
	} {
		path := filepath.Join(t.TempDir(), "uri")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(t.Context(), path)
		if err != nil {
			got = err.Error()
		}
		if got != want || err != nil && strings.Contains(got, "c4n4ry") {
			t.Errorf("ReadFile() of %.60q = %.60q, want %.60q", content, got, want)
		}
	}
	for path, want := range map[string]string{t.TempDir(): "is a directory", filepath.Join(t.TempDir(), "none"): "no such file or directory"} {
		if _, err := ReadFile(t.Context(), path); err == nil || err.Error() != want {
			t.Errorf("ReadFile(%q) = %v, want %s", path, err, want)
		}
	}
}

// What is in the file may be a secret as a whole, or in any part.
func TestAnErrorOfAFileShowsNothingOfIt(t *testing.T) {
	none := func(string) string { return "" }
	for _, uri := range []string{"canary", "canary:x", "sqlite:x?canary=x", "sqlite://canary", "etcd://canary", "sqlite:"} {
		if _, err := ParseFile(uri, none); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("ParseFile(%q) = %v, want an error that doesn't show it", uri, err)
		}
	}
	if _, err := ParseFile(`"mongodb://canary@h/d"`, none); err == nil || err.Error() != "its content is in quotes: leave them out" {
		t.Errorf("ParseFile() of a URI in quotes = %v", err)
	}
	if got, err := ParseFile("sqlite:x.db", none); err != nil || got.Scheme != SQLite {
		t.Errorf("ParseFile() = %+v, %v", got, err)
	}
	if got, err := ParseFile("cosmos://account/d/c", none); err != nil || got.Shown != cosmos.Redact("cosmos://account/d/c") {
		t.Errorf("ParseFile() = %+v, %v", got, err)
	}
}
