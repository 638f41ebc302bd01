package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

var (
	errMissing  = fmt.Errorf("%w: the file is missing or empty", store.ErrMissing)
	errReadOnly = fmt.Errorf("%w: the ledger was opened for reading only", store.ErrDenied)
	// errUnfinished: undoing an interrupted change needs writing, so Init does it.
	errUnfinished = fmt.Errorf("%w: a crash interrupted the creation or a change of the file, and a handle for reading can't undo it: init the ledger", store.ErrMissing)
)

// resultCode returns SQLite's extended result code, or 0.
func resultCode(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code()
	}
	return code.SQLITE_OK
}

// isBusy reports whether the operation did nothing and should be repeated, because
// another connection held a lock or changed the file.
func isBusy(err error) bool {
	if errors.Is(err, errChanged) || errors.Is(err, errSpent) || errors.Is(err, errOtherLog) || isClosed(err) {
		return true
	}
	switch c := resultCode(err); c {
	case code.SQLITE_READONLY_RECOVERY, code.SQLITE_READONLY_CANTLOCK:
		return true
	default:
		return c&0xff == code.SQLITE_BUSY || c&0xff == code.SQLITE_LOCKED || c&0xff == code.SQLITE_PROTOCOL
	}
}

// isClosed reports whether the operation did nothing, because another one closed the
// file meanwhile.
func isClosed(err error) bool {
	return errors.Is(err, sql.ErrConnDone) || err != nil && err.Error() == "sql: database is closed"
}

// explain adds the sentinel that fits an error.
func (l *Ledger) explain(ctx context.Context, err error) error {
	c := resultCode(err)
	switch {
	case c == code.SQLITE_CONSTRAINT_PRIMARYKEY:
		return store.ErrConflict
	case c&0xff == code.SQLITE_CONSTRAINT:
		return fmt.Errorf("%w: a constraint that isn't a ledger's keeps the record out: %w", store.ErrRefused, err)
	case c&0xff == code.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w: %w", store.ErrRefused, fault.Flaw{Check: store.CheckLedger, What: "not a SQLite database", Remedy: "choose another file"}, err)
	case c&0xff == code.SQLITE_CORRUPT:
		return fmt.Errorf("%w: %w: %w", store.ErrRefused, fault.Flaw{Check: store.CheckLedger, What: "the file is corrupt", Remedy: "stop all its workers, then remove it"}, err)
	case c == code.SQLITE_READONLY_DBMOVED:
		return fmt.Errorf("%w: the file was removed or replaced: %w", ErrUnshared, err)
	case c&0xff == code.SQLITE_READONLY && l.o.ReadOnly:
		return l.unread(err)
	case c&0xff == code.SQLITE_READONLY || c&0xff == code.SQLITE_PERM:
		for _, suffix := range suffixes[1:] {
			if name := l.o.Path + suffix; errors.Is(mayWrite(name), fs.ErrPermission) {
				return fmt.Errorf("%w: no right to write %s, which another user has made: start the workers as one user: %w", store.ErrDenied, name, err)
			}
		}
		if errors.Is(mayWrite(l.o.Path), syscall.EROFS) {
			return fmt.Errorf("%w: the file system of %s is mounted for reading only: %w", store.ErrDenied, l.o.Path, syscall.EROFS)
		}
		return fmt.Errorf("%w: the process must be able to write the file and its directory: %w", store.ErrDenied, err)
	case c&0xff == code.SQLITE_CANTOPEN && l.o.ReadOnly:
		return l.unread(err)
	case c&0xff == code.SQLITE_CANTOPEN:
		return fmt.Errorf("%w: %w", l.whyShut(), err)
	case c&0xff == code.SQLITE_INTERRUPT && ctx.Err() != nil:
		return fault.Ended(ctx)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", store.ErrDenied, err)
	}
	return err
}

// whyShut finds out why SQLite can't open the file, because SQLite doesn't say.
func (l *Ledger) whyShut() error {
	dir := filepath.Dir(l.o.Path)
	if _, err := stat(dir); err != nil {
		return err
	}
	if err := mayWrite(dir); err != nil {
		return fmt.Errorf("%w: no right to write in %s: %w", store.ErrDenied, dir, err)
	}
	for _, f := range []struct{ what, path string }{{"file", l.o.Path}, {"journal beside the file", l.o.Path + "-journal"}} {
		if err := mayWrite(f.path); errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: no right to read and write the %s: %w", store.ErrDenied, f.what, err)
		}
	}
	return errShut
}

// errShut: nothing shows why.
var errShut = errors.New("SQLite can't open it")

// unread explains why a handle for reading can't open the file. Where that is known, the file
// wasn't changed meanwhile, as it seemed to be.
func (l *Ledger) unread(err error) error {
	why := l.whyUnread()
	if cause, ok := errors.AsType[*driver.Error](err); ok && !errors.Is(why, errShut) {
		err = cause
	}
	return fmt.Errorf("%w: %w", why, err)
}

// whyUnread is whyShut for a handle for reading, which needs fewer rights.
func (l *Ledger) whyUnread() error {
	if _, err := stat(filepath.Dir(l.o.Path)); err != nil {
		return err
	}
	if err := mayRead(l.o.Path); err != nil {
		return fmt.Errorf("%w: no right to read the file: %w", store.ErrDenied, err)
	}
	target, err := filepath.EvalSymlinks(l.o.Path)
	if err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		err := mayRead(target + suffix)
		switch {
		case err == nil || !logged(target):
		case suffix == "-shm" && errors.Is(err, fs.ErrNotExist):
			name := filepath.Base(target)
			return fmt.Errorf("%w: its -shm file can't be read, because it is missing, and only a process that may write the directory makes it: look at the ledger once as its owner, or, if no worker uses it, copy %s and %s-wal into a directory that you may write, and look at the copy", store.ErrDenied, name, name)
		default:
			return fmt.Errorf("%w: the ledger is in use or was left in a crash, and its %s file can't be read: %w", store.ErrDenied, suffix, err)
		}
	}
	return errShut
}
