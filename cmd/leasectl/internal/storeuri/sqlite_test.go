package storeuri

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheOptionOfASQLiteFileIsNoPartOfItsPath(t *testing.T) {
	for text, want := range map[string]struct {
		path   string
		unsafe bool
	}{
		"/srv/x.db":                           {"/srv/x.db", false},
		"/srv/x.db?unsafeFileSystem=true":     {"/srv/x.db", true},
		"/srv/what?.db":                       {"/srv/what?.db", false},
		"/srv/what?.db?unsafeFileSystem=true": {"/srv/what?.db", true},
		"/srv/a=b.db":                         {"/srv/a=b.db", false},
	} {
		got, err := Parse("sqlite:"+text, os.Getenv)
		if err != nil || got.file.Path != want.path || got.file.UnsafeFileSystem != want.unsafe || got.Shown != "sqlite:"+text {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", text, got, err, want)
		}
		if place := "sqlite:" + text; filepath.IsAbs(want.path) && got.Place() != place {
			t.Errorf("Parse(%q).Place() = %q, want %q", text, got.Place(), place)
		}
	}
	for text, says := range map[string]string{
		"sqlite:x.db?unsafeFileSystem=false": "the only option is ?unsafeFileSystem=true",
		"sqlite:x.db?unsafefilesystem=true":  "the only option is",
		"sqlite:x.db?mode=ro":                `"?mode=…" is unknown`,
		"sqlite:?unsafeFileSystem=true":      "has no path",
	} {
		if _, err := Parse(text, os.Getenv); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Parse(%q) = %v, want %q", text, err, says)
		}
	}
}
