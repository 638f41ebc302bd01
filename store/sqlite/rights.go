package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	code "modernc.org/sqlite/lib"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// CheckRights returns store.ErrMissing if there is no ledger, though an append would create it: a worker that was started
// in another directory would get a ledger of its own. It returns store.ErrDenied if the process may not write the file.
func (l *Ledger) CheckRights(ctx context.Context) error {
	if l.o.ReadOnly {
		return errReadOnly
	}
	_, err := do(ctx, l, "check rights", l.o.Path, func(ctx context.Context) (none struct{}, err error) {
		l.mu.Lock()
		used := l.file != nil
		l.mu.Unlock()
		if used {
			return none, nil
		}
		found, err := l.inspect(ctx)
		if err == nil && found < isLedger {
			err = errMissing
		}
		return none, err
	})
	return err
}

// InitScript returns the statements of Init for sqlite3.
func (l *Ledger) InitScript() string {
	return "-- sqlite3 " + l.o.Path + "\n-- Workers must be able to read and write the file and its directory.\nBEGIN IMMEDIATE;\n" +
		strings.Join(creation, ";\n") + ";\nCOMMIT;\nPRAGMA journal_mode = WAL;\n"
}

// target is the path with the symbolic links followed.
func (l *Ledger) target() string {
	if target, err := filepath.EvalSymlinks(l.o.Path); err == nil {
		return target
	}
	return named(l.o.Path) // It is missing.
}

// missingRight finds a right that is missing, by what asks for it, and why: to the file, to those beside it, and
// to a directory, if one is given.
func (l *Ledger) missingRight(may func(path string) error, dir string) (flaw storekit.Flaw, found bool, why error) {
	target := l.target()
	for _, path := range []string{target, target + "-wal", target + "-shm", target + "-journal", dir} {
		err := may(path)
		switch {
		case path == "" || err == nil || errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, syscall.EROFS):
			return storekit.Flaw{
				What:   "the file system of " + path + " is mounted for reading only",
				Remedy: "mount it for writing; the log of the kernel says why it isn't, as after an error of the disk",
			}, true, err
		}
		verb := "write"
		if mayRead(path) != nil {
			verb = "read"
		}
		return storekit.Flaw{
			What:   fmt.Sprintf("no right to %s %s (%v)", verb, path, err),
			Remedy: "run as the user of the workers, or give this user the right to the directory, the file and the two files beside it",
		}, true, err
	}
	return storekit.Flaw{}, false, nil
}

// denied is the error of SQLite's that a right is missing, or may be: SQLite doesn't say which. What shows a right that is missing
// shows that the file wasn't changed meanwhile, as it seemed to be.
func (l *Ledger) denied(err error) error {
	target := l.target()
	may, dir := mayWrite, filepath.Dir(target)
	if l.o.ReadOnly {
		may, dir = mayRead, ""
	}
	_, gone := stat(filepath.Dir(l.o.Path))
	flaw, found, why := l.missingRight(may, dir)
	switch {
	case gone != nil:
		return fmt.Errorf("%w: %w", gone, err)
	case found:
		return fmt.Errorf("%w: %s: %w", store.ErrDenied, flaw.What, why)
	case l.o.ReadOnly && logged(target) && errors.Is(mayRead(target+"-shm"), fs.ErrNotExist):
		name := filepath.Base(target)
		return fmt.Errorf("%w: its -shm file can't be read, because it is missing, and only a process that may write the directory makes it: look at the ledger once as its owner, or, if no worker uses it, copy %s and %s-wal into a directory that you may write, and look at the copy", store.ErrDenied, name, name)
	case resultCode(err)&0xff == code.SQLITE_CANTOPEN || l.o.ReadOnly:
		return fmt.Errorf("SQLite can't open it: %w", err)
	}
	return fmt.Errorf("%w: the process must be able to write the file and its directory: %w", store.ErrDenied, err)
}

// fullDisk finds that there is no room for a record, nor for what SQLite writes beside it.
func fullDisk(dir string) (flaw storekit.Flaw, full bool) {
	const least = 64 << 10
	free, known := room(dir)
	return storekit.Flaw{
		What:   fmt.Sprintf("the disk is full: %d bytes are free in %s", free, dir),
		Remedy: "free space on that disk: workers go on by themselves then",
	}, known && free < least
}
