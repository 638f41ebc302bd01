package storeuri

import (
	"context"
	"errors"
	"testing"

	"github.com/slotlease/slotlease/store"
)

func TestTheStoreIsToldOfItsFile(t *testing.T) {
	var told store.OpenOptions
	failed := errors.New("none")
	store.Register("renewal", store.Driver{
		Open: func(_ context.Context, _ string, o store.OpenOptions) (store.Ledger, error) {
			told = o
			return nil, failed
		},
		Redact: func(uri string) string { return uri },
	})
	target, err := ParseFile("renewal://h/x", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	target.File = "/run/uri"
	if _, err := target.Open(t.Context(), true); !errors.Is(err, failed) || told.File != "/run/uri" {
		t.Errorf("Open() = %v with the file %q, want it named", err, told.File)
	}
}
