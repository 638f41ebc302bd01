package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// stat is os.Stat, but in the test of a disk that hangs.
var stat = os.Stat

// use returns the open file, opening it (and, unless ReadOnly, creating or
// upgrading it) if it isn't open or another file has its name now. One call at a time
// does so, and the others wait only until their contexts end. So a disk that hangs
// blocks one goroutine, not one per call.
func (l *Ledger) use(ctx context.Context) (*file, error) {
	select {
	case l.opening <- struct{}{}:
		defer func() { <-l.opening }()
	case <-ctx.Done():
		return nil, fault.Ended(ctx)
	}
	f, used, err := l.current()
	if f != nil || err != nil {
		return f, err
	}
	return l.reopen(ctx, used)
}

// current is the open file if it is still the one at its path, else nil and the files that were used before.
func (l *Ledger) current() (*file, files, error) {
	l.mu.Lock()
	f, used, closed, unshared := l.file, l.used, l.closed, l.unshared
	l.mu.Unlock()
	switch {
	case closed:
		return nil, used, store.ErrClosed
	case unshared != nil:
		return nil, used, before(unshared)
	case f == nil:
		return nil, used, nil
	}
	err := f.check()
	if err == nil && !f.one.spent() {
		return f, used, nil
	}
	if err != nil && !l.o.ReadOnly {
		return nil, used, before(l.found(err))
	}
	l.put(nil)
	_ = f.close()
	return nil, used, nil
}

// reopen opens the file, unless it is another than the one that was used before.
func (l *Ledger) reopen(ctx context.Context, used files) (*file, error) {
	same := func() error {
		if used.path == "" || l.o.ReadOnly {
			return nil
		}
		return before(l.found(used.check(false)))
	}
	if err := same(); err != nil {
		return nil, err
	}
	found, err := l.inspect(ctx)
	if err != nil {
		return nil, err
	}
	// A ledger that existed and was removed is not created again: workers may still
	// work under its leases, and an empty file would grant them a second time.
	if found != isLedger && (l.o.ReadOnly || used.path != "") {
		return nil, errMissing
	}
	if found != isLedger {
		if err := establish(ctx, l.o.Path); err != nil {
			return nil, err
		}
	}
	f, err := openFile(ctx, l.o.Path, l.o.ReadOnly)
	if err != nil {
		return nil, err
	}
	if err := same(); err != nil {
		_ = f.close()
		return nil, err
	}
	if !f.reading.alone() {
		l.put(f)
	}
	return f, nil
}

// found returns an error of files.check. A handle that may be unshared stays so, and lets
// go of the file, so that what it has stored goes from its log to the ledger.
func (l *Ledger) found(err error) error {
	if !errors.Is(err, ErrUnshared) || errors.Is(err, errLinked) && seesOtherLogs {
		return err // A backup may make a link, and remove it.
	}
	l.mu.Lock()
	f := l.file
	l.file = nil
	if l.unshared == nil {
		l.unshared = err
	}
	l.mu.Unlock()
	_ = f.close()
	return err
}

// inspect is inspect of a path that all workers can share.
func (l *Ledger) inspect(ctx context.Context) (state, error) {
	if err := fit(l.o.Path, l.o.UnsafeFileSystem); err != nil {
		return isMissing, err
	}
	if !l.o.ReadOnly {
		if err := claimed(l.o.Path); err != nil {
			return isMissing, err
		}
		// SQLite would open it for reading, and leave a log that its owner can't write.
		if err := mayWrite(l.o.Path); errors.Is(err, fs.ErrPermission) {
			return isMissing, fmt.Errorf("%w: the process must be able to write the file and its directory: no right to read and write the file: %s", store.ErrDenied, err.Error())
		}
	}
	return inspect(ctx, l.o.Path, l.o.ReadOnly)
}

// put sets the open file. If the ledger was closed meanwhile, Close is waiting
// for this call and closes the file then.
func (l *Ledger) put(f *file) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file = f
	if f != nil {
		l.used = f.files
	}
}

// writes runs one operation on the open file, unless the ledger is for reading only.
func writes[T any](ctx context.Context, l *Ledger, op, key string, act func(ctx context.Context, f *file) (T, error)) (T, error) {
	return do(ctx, l, op, key, func(ctx context.Context) (none T, err error) {
		if l.o.ReadOnly {
			return none, errReadOnly
		}
		f, err := l.use(ctx)
		if err != nil {
			return none, err
		}
		return act(ctx, f)
	})
}

// reads runs one operation on the open file. A file that is read alone is opened for
// this reading only, because SQLite wouldn't notice a change.
func reads[T any](ctx context.Context, l *Ledger, op, key string, act func(ctx context.Context, f *file) (T, error)) (T, error) {
	return do(ctx, l, op, key, onFile(l, act))
}

// onFile is act on the open file.
func onFile[T any](l *Ledger, act func(ctx context.Context, f *file) (T, error)) func(ctx context.Context) (T, error) {
	return func(ctx context.Context) (value T, err error) {
		f, err := l.use(ctx)
		if err != nil {
			return value, err
		}
		value, err = act(ctx, f)
		err = f.reading.check(err)
		if err != nil && !f.readOnly {
			err = f.blamed(ctx, err)
		}
		if f.reading.alone() {
			_ = f.close()
		}
		return value, err
	}
}
