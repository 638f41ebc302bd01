package storeuri

import (
	"context"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

// Examine lets a store examine itself, through the ledger that Open made of it. A SQLite file is also examined if
// Open refuses it, so that the ledger is nil; of others there is nothing to say then.
func (t Target) Examine(ctx context.Context, l store.Ledger) ([]store.Finding, error) {
	if t.Scheme == SQLite {
		return sqlite.Examine(ctx, sqlite.Options{Path: t.file.Path, UnsafeFileSystem: t.file.UnsafeFileSystem})
	}
	if e, ok := l.(store.Examiner); ok {
		return e.Examine(ctx)
	}
	return nil, nil
}
