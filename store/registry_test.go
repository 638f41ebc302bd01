package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
)

func TestAStoreIsChosenByTheSchemeOfItsURI(t *testing.T) {
	opened := errors.New("opened")
	d := store.Driver{
		Open: func(_ context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
			if uri != "testing:here" || !o.ReadOnly {
				t.Errorf("Open(%q, %+v), want what Open was given", uri, o)
			}
			return nil, opened
		},
		Redact: func(string) string { return "testing:shown" },
	}
	store.Register("testing", d)
	if _, err := store.Open(t.Context(), "testing:here", store.OpenOptions{ReadOnly: true}); !errors.Is(err, opened) {
		t.Errorf("Open() = %v, want what its driver returns", err)
	}
	if got := store.Redact("testing:here"); got != "testing:shown" {
		t.Errorf("Redact() = %q, want what its driver returns", got)
	}
	if !slices.Contains(store.Schemes(), "testing") {
		t.Errorf("Schemes() = %q, want testing among them", store.Schemes())
	}
	for _, uri := range []string{"", "c4nary", "c4nary:x", ":", "testing"} {
		_, err := store.Open(t.Context(), uri, store.OpenOptions{})
		if err == nil || strings.Contains(err.Error(), "c4nary") || !strings.Contains(err.Error(), "testing") {
			t.Errorf("Open(%q) = %v, want an error that names the schemes, and not the URI", uri, err)
		}
		if got := store.Redact(uri); got != "***" {
			t.Errorf("Redact(%q) = %q, want nothing of it", uri, got)
		}
	}
	for name, d := range map[string]store.Driver{"testing": d, "other": {}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Register(%s) of one that is taken or lacks a function didn't panic", name)
				}
			}()
			store.Register(name, d)
		}()
	}
}

func TestASlipInAURIIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"known://c4nary@h/d":   "",
		"OTHER://h":            "",
		"known:odd ":           "",
		" known://c4nary@h/d":  "begins or ends with a blank: leave it out",
		"known://c4nary@h/d\t": "begins or ends with a blank: leave it out",
		"known:c4nary\n":       "ends with a line end: leave it out",
		"known:c4nary\r":       "ends with a line end: leave it out",
		`"known://c4nary@h/d"`: "is in quotes: leave them out",
		"'c4nary":              "is in quotes: leave them out",
		"“known://c4nary@h”":   "is in quotes: leave them out",
		"Known://c4nary@h/d":   "has its scheme in capitals: write it as known",
	} {
		got := ""
		if err := store.CheckURI(text, "known"); err != nil {
			got = err.Error()
		}
		if got != want || strings.Contains(got, "c4nary") {
			t.Errorf("CheckURI(%q) = %q, want %q", text, got, want)
		}
	}
	if _, err := store.Open(t.Context(), "'testing:here'", store.OpenOptions{}); err == nil || err.Error() != "open a store: the URI is in quotes: leave them out" {
		t.Errorf("Open() of a URI in quotes = %v", err)
	}
}
