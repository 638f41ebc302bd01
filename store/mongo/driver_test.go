package mongo

import (
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
)

func TestACollectionIsOpenedByItsURI(t *testing.T) {
	t.Parallel()
	const uri = "mongodb://me:c4nary@127.0.0.1:1/jobs?collection=leases"
	l, err := store.Open(t.Context(), uri, store.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.(*Ledger).String(); !strings.Contains(got, "jobs/leases") && !strings.Contains(got, "jobs.leases") || strings.Contains(got, "c4nary") {
		t.Errorf("store.Open() = %s, want jobs and leases, and no password", got)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := store.Redact(uri); got != Redact(uri) || strings.Contains(got, "c4nary") {
		t.Errorf("store.Redact() = %s, want it without the password", got)
	}
	if _, err := store.Open(t.Context(), uri+"&serverSkew=soon", store.OpenOptions{}); err == nil || strings.Contains(err.Error(), "c4nary") {
		t.Errorf("store.Open() = %v, want an error without secrets", err)
	}
}
