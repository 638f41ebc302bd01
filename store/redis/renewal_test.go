package redis

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
)

func TestALoginIsRenewedInTheFileOfTheURI(t *testing.T) {
	t.Parallel()
	s, at := newRotating(t), filepath.Join(t.TempDir(), "uri")
	write := func(password string) string {
		uri := strings.Replace(s.URI(), "redis://", "redis://worker:"+password+"@", 1)
		must(t, "WriteFile()", os.WriteFile(at, []byte(uri+"\n"), 0o600))
		return uri
	}
	l, err := store.Open(t.Context(), write("first"), store.OpenOptions{File: at})
	must(t, "Open()", err)
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	documenttest.GoesOn(t, l, func() {
		write("second")
		s.rotate(t, "second")
	})
	documenttest.GoesOn(t, l, func() { // What it had last is used.
		must(t, "Remove()", os.Remove(at))
		s.rotate(t, "second")
	})
}
