package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
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

// isBelow reports whether the record that was to be below an insert isn't there: no other column of an insert that is NULL must not
// be, and those of others have defaults, see intruder.
func isBelow(err error) bool { return resultCode(err) == code.SQLITE_CONSTRAINT_NOTNULL }

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
		return isLocked(err) || c&0xff == code.SQLITE_PROTOCOL
	}
}

// isLocked reports whether another connection has the file locked.
func isLocked(err error) bool {
	c := resultCode(err) & 0xff
	return c == code.SQLITE_BUSY || c == code.SQLITE_LOCKED
}

// isClosed reports whether the operation did nothing, because another one closed the
// file meanwhile.
func isClosed(err error) bool {
	return errors.Is(err, sql.ErrConnDone) || err != nil && err.Error() == "sql: database is closed"
}

// mistaken is what SQLite says of a statement that it can't parse, or that names what isn't there. Tables that are no longer a ledger's
// have been found by then.
var mistaken = regexp.MustCompile(`syntax error|unrecognized token|incomplete input|no such (column|function|table)`)

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
	case c&0xff == code.SQLITE_PERM, c&0xff == code.SQLITE_READONLY, c&0xff == code.SQLITE_CANTOPEN:
		return l.denied(err)
	case c == code.SQLITE_ERROR && mistaken.MatchString(err.Error()):
		return advised{fmt.Errorf("%w: the statement or the tables are at fault, not the file: %w", store.ErrRefused, err), fault.OfMistake}
	case c&0xff == code.SQLITE_INTERRUPT && ctx.Err() != nil:
		return fault.Ended(ctx)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", store.ErrDenied, err)
	}
	return err
}

// advised is an error with what to do about it.
type advised struct {
	error
	remedy string
}

func (e advised) Unwrap() error  { return e.error }
func (e advised) Remedy() string { return e.remedy }

// advise adds what to do about an error, as far as that depends on the file.
func (l *Ledger) advise(err error) error {
	dir := filepath.Dir(l.o.Path)
	switch {
	case errors.Is(err, ErrUnshared) && errors.Is(err, store.ErrMissing):
		return advised{err, "put the ledger back, or a backup of it, before you start workers again"}
	case errors.Is(err, syscall.EROFS):
		return advised{err, "mount the file system for writing; the log of the kernel says why it isn't, as after an error of the disk"}
	case errors.Is(err, store.ErrDenied), errors.Is(err, fs.ErrPermission):
		return advised{err, "run as a user that may write (to inspect: read) the directory " + dir + " and the file " + l.o.Path}
	case errors.Is(err, syscall.ENOTDIR):
		for dir = filepath.Dir(named(l.o.Path)); ; dir = filepath.Dir(dir) {
			if info, gone := stat(dir); gone == nil && !info.IsDir() {
				return advised{err, "name a file in a directory: " + dir + " is none"}
			} else if gone == nil {
				return err
			}
		}
	case errors.Is(err, store.ErrMissing), errors.Is(err, fs.ErrNotExist):
		if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path != l.o.Path {
			dir = e.Path // The file is a link into another directory.
		}
		if _, gone := stat(dir); errors.Is(gone, fs.ErrNotExist) {
			return advised{err, "create the directory " + dir + " first"}
		}
	}
	return err
}
