package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// advised is an error with a remedy, which may be empty.
type advised struct {
	error
	remedy string
}

func (e advised) Unwrap() error  { return e.error }
func (e advised) Remedy() string { return e.remedy }

func TestARemedyIsFoundBelowAnErrorWithoutOne(t *testing.T) {
	inner := advised{store.ErrMissing, "create the directory"}
	for _, err := range []error{inner, advised{inner, ""}, fmt.Errorf("open: %w", advised{errors.Join(errors.New("no"), inner), ""})} {
		if got := store.Remedy(err); got != inner.remedy {
			t.Errorf("Remedy(%v) = %q, want %q", err, got, inner.remedy)
		}
	}
	if got := store.Remedy(advised{errors.New("no"), ""}); got != "" {
		t.Errorf("without one, Remedy() = %q", got)
	}
}
