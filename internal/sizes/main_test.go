package main

import (
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEveryStoreIsMeasuredByAProgramAsPeopleWriteIt(t *testing.T) {
	docs, err := filepath.Glob("../../store/*/doc.go")
	if err != nil || len(docs) == 0 {
		t.Fatalf("Glob() = %v, %v, want packages", docs, err)
	}
	table, err := os.ReadFile("../../docs/stores/figures.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		name := filepath.Base(filepath.Dir(d))
		i := slices.IndexFunc(users, func(u user) bool { return u.store == name })
		if name == "storekit" {
			continue
		}
		if i < 0 {
			t.Errorf("store/%s isn't measured", name)
			continue
		}
		source := users[i].source()
		if formatted, err := format.Source([]byte(source)); err != nil || string(formatted) != source {
			t.Errorf("the program of store/%s: %v, or gofmt would change it:\n%s", name, err, source)
		}
		if !strings.Contains(string(table), "\n| `store/"+name+"` | ") {
			t.Errorf("docs/stores/figures.md has no size of store/%s", name)
		}
	}
}

func TestEachLeasectlIsInTheTable(t *testing.T) {
	table, err := os.ReadFile("../../docs/stores/figures.md")
	if err != nil {
		t.Fatal(err)
	}
	mains, err := filepath.Glob("../../store/*/leasectl/main.go")
	if err != nil || len(mains)+3 != len(leasectls) {
		t.Errorf("Glob() = %q, %v, want that each of them is measured, and the three of cmd", mains, err)
	}
	for _, l := range leasectls {
		if !strings.Contains(string(table), "\n| "+l.name+" | ") {
			t.Errorf("docs/stores/figures.md has no size of %s", l.name)
		}
	}
}
