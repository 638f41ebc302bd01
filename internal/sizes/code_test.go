package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheTableOfTheCodeCountsLinesBranchesAndNames(t *testing.T) {
	dir := t.TempDir()
	long := "func Long() {\n" + strings.Repeat("\tprintln()\n", 61) + "}\n"
	branched := "func branched(a, b bool) {\n\tif a && b {\n\t\treturn\n\t}\n" + strings.Repeat("\tfor a {\n\t}\n", 18) + "}\n"
	for name, text := range map[string]string{
		"a/a.go":      "// Package a is short.\npackage a\n\n/* two\nlines */\n\n// One is exported.\nconst One, two = 1, 2 // both\n\n" + long + branched,
		"a/a_test.go": "package a\n\nfunc TestNothing() {}\n",
		"doc.md":      "three words here\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := printCode(&out, dir); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| a | 1 | 109 | 4 | 3 | 1 | 1 | 2 |", "words of Markdown: 3;"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printCode() wrote\n%s\nwant %q", &out, want)
		}
	}
}
