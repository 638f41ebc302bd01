package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A module with mistakes that the compiler for Linux with 64 bits can't see, one of them in a test.
func TestMistakesOfOtherSystemsAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.com/m\n\ngo 1.26.0\n",
		"wide.go":       "package m\n\nvar wide int = 1 << 40\n",
		"linux.go":      "package m\n\nfunc f() { g() }\n",
		"g_linux.go":    "package m\n\nfunc g() {}\n",
		"m_test.go":     "package m\n\nimport \"syscall\"\n\nvar kill = syscall.Kill\n",
		"below/fine.go": "package below\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		system, arch string
		wants        []string
	}{
		{"linux", "amd64", nil},
		{"linux", "386", []string{"wide.go:3:16: "}},
		{"darwin", "arm64", []string{"linux.go:3:12: undefined: g"}},
		{"windows", "amd64", []string{"linux.go:3:12: undefined: g", "m_test.go:5:20: undefined: syscall.Kill"}},
	} {
		n, errs := check(dir, test.system, test.arch)
		if n < 3 || len(errs) != len(test.wants) {
			t.Errorf("check(%s/%s) = %d packages and %v, want 3 or more, and %q", test.system, test.arch, n, errs, test.wants)
		}
		for _, want := range test.wants {
			found := false
			for _, err := range errs {
				found = found || strings.Contains(err.Error(), want)
			}
			if !found {
				t.Errorf("check(%s/%s) found %v, want %q, too", test.system, test.arch, errs, want)
			}
		}
	}
	if _, errs := check(t.TempDir(), "linux", "amd64"); len(errs) == 0 {
		t.Error("check() of a folder without packages = nil, want an error")
	}
}
