package app

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

// A signal that comes while the store is being opened ends leasectl as at any other time.
func TestASignalWhileTheStoreIsOpenedIsNoError(t *testing.T) {
	target, err := storeuri.Parse("sqlite:"+filepath.Join(t.TempDir(), "l.db"), func(string) string { return "" })
	must(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("terminated"))
	for once, want := range map[bool]int{false: exit.OK, true: exit.Interrupted} {
		ledger, err := new(app).openToLease(ctx, &runFlags{once: once}, target, runlog.New(runlog.Options{To: io.Discard}))
		code := exit.OK
		if e, ok := errors.AsType[*exit.Error](err); ok {
			code = e.Code
		}
		if ledger != nil || code != want || errors.Is(err, context.Canceled) {
			t.Errorf("with --once %v it ends with code %d, %v, want %d, and not the store's error", once, code, err, want)
		}
	}
}
