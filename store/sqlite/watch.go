package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/internal/bubble"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// Watch calls changed, with the empty name, when a handle of any process on this machine has
// appended what may free a lease: at most once in 20 ms, on the goroutine of Watch. It works on
// Linux only, not with Options.BootID, and not inside a testing/synctest bubble, whose time would
// stand still while Watch waits; else the error matches errors.ErrUnsupported. It opens neither the
// ledger nor its log.
//
// A handle that appends such a record sets the times of the ledger's -wal file, and Watch notices
// that by inotify in the directory. So neither grants nor backups cause hints; but each program that
// opens the ledger as root does, because SQLite then sets the owner of the log.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	fail := func(err error) error { return fmt.Errorf("sqlite: watch %s: %w", l.o.Path, err) }
	if ctx.Err() != nil {
		return fail(fault.Ended(ctx))
	}
	if l.o.BootID != "" || bubble.Inside() {
		return fail(errors.ErrUnsupported)
	}
	if err := l.begin(); err != nil {
		return fail(err)
	}
	defer l.calls.Done()
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.life, func() { cancel(store.ErrClosed) })()
	err := l.watch(both, func() { changed("") })
	switch {
	case ctx.Err() != nil:
		err = fault.Ended(ctx)
	case both.Err() != nil:
		err = store.ErrClosed
	}
	return fail(err)
}
