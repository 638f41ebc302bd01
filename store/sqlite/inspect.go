package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	code "modernc.org/sqlite/lib"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// state is the kind of file at a path.
type state int

const (
	isMissing state = iota
	isEmpty         // may become a ledger
	isLedger
)

// inspect finds out what is at a path, and leaves it unchanged, with one exception: if
// a crash interrupted a change of a ledger, or its creation, it is undone, unless
// readOnly.
//
// inspect opens the file only through SQLite: closing another descriptor would drop the
// locks of every handle of this process on the file. A file with a log or a journal is
// opened in read-only mode, in which SQLite can't replay it. A file without them is
// opened for writing, though nothing is written, because only then SQLite removes the
// files that it creates beside it.
func inspect(ctx context.Context, path string, readOnly bool) (found state, err error) {
	info, err := stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := stat(filepath.Dir(named(path))); err != nil {
			return isMissing, fmt.Errorf("directory of the file: %w", err)
		}
		return isMissing, orphaned(path)
	case err != nil:
		return isMissing, err
	case info.IsDir():
		return isMissing, fmt.Errorf("%w: not a regular file: name one in that directory", store.ErrRefused)
	case !info.Mode().IsRegular():
		return isMissing, fmt.Errorf("%w: not a regular file", store.ErrRefused)
	case info.Size() == 0:
		if err := orphaned(path); err != nil {
			return isMissing, err
		}
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return isMissing, err
	}
	how := reading{mode: lookForWriting}
	if readOnly {
		if how, err = readingOf(path); err != nil {
			return isMissing, err
		}
		defer how.release()
	}
	if how.mode == lookForWriting && logged(target) {
		how.mode = "mode=ro"
	}
	found, err = look(ctx, path, how.mode, readOnly)
	err = how.check(err)
	if resultCode(err) != code.SQLITE_READONLY_ROLLBACK {
		return found, err
	}
	// A crash during a change left a journal, from which SQLite undoes the change as
	// soon as the file is opened for writing. An unfinished creation becomes an empty
	// file again.
	gone := func() bool {
		_, err := stat(target + "-journal")
		return errors.Is(err, fs.ErrNotExist)
	}
	if gone() {
		// No crash: another process was just finishing, or undid the change before us.
		return inspect(ctx, path, readOnly)
	}
	if err := claim(ctx, path); err != nil {
		if gone() { // undone while we looked at what was left
			return inspect(ctx, path, readOnly)
		}
		return isMissing, err
	}
	if readOnly {
		return isMissing, errUnfinished
	}
	return look(ctx, path, lookForWriting, readOnly)
}

// orphaned refuses a file that is missing or empty whose log has records: it was moved, or lost, and the first who opens another in
// its place removes the log, and with it the newest records. A new file is written before it has a log.
func orphaned(path string) error {
	log := named(path) + "-wal"
	if info, err := stat(log); err != nil || info.Size() == 0 {
		return nil
	}
	if info, err := stat(path); err == nil && info.Size() > 0 {
		return nil // Another process has made it since the caller looked.
	}
	return fmt.Errorf("%w: the file is missing or empty, but its newest records are there, in %s: put the file back beside that; if its records may go, remove that first", store.ErrRefused, log)
}

// named is the path of a file that is missing, with the symbolic links to it followed.
func named(path string) string {
	const most = 40 // Linux follows no more.
	for range most {
		dir, name := filepath.Split(path)
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return path
		}
		path = filepath.Join(dir, name)
		to, err := os.Readlink(path)
		switch {
		case err != nil:
			return path
		case filepath.IsAbs(to):
			path = to
		default:
			path = dir + string(filepath.Separator) + to // Join would take .. before the links.
		}
	}
	return path
}

// look identifies the file through a handle in the given mode.
func look(ctx context.Context, path, mode string, readOnly bool) (found state, err error) {
	db, err := connect(path, mode)
	if err != nil {
		return isMissing, err
	}
	defer func() { err = cmp.Or(err, db.Close()) }()
	return identify(ctx, db, readOnly)
}

// claim checks, without changing it, that a file with an interrupted change is ours to
// repair. It has our mark already, because creation writes the first page first.
//
// immutable makes SQLite read the file as it is and ignore the journal, and
// writable_schema makes it accept a file that is shorter than its header says. The
// handle can't write.
func claim(ctx context.Context, path string) (err error) {
	db, err := dial(path, "mode=ro&immutable=1&_pragma=writable_schema(1)")
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, db.Close()) }()
	var application int64
	err = db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&application)
	if c := resultCode(err) & 0xff; c == code.SQLITE_NOTADB || c == code.SQLITE_CORRUPT {
		return fmt.Errorf("%w: neither a ledger nor another database, with a SQLite journal beside it: remove both, or choose another file: %w", store.ErrRefused, err)
	}
	if err == nil && application != applicationID {
		return notOurs("a database of another application (application_id %#x) with an interrupted change", uint32(application))
	}
	return err
}

// notOurs refuses a file that isn't a ledger.
func notOurs(format string, args ...any) error {
	return fault.Flaw{Check: store.CheckLedger, What: fmt.Sprintf(format, args...), Remedy: "choose another file"}.Refuse()
}

// identify reads the marks of a ledger. One whose tables others have constrained can be read.
func identify(ctx context.Context, db querier, readOnly bool) (state, error) {
	var application, version, objects int64
	var key sql.NullString
	var encoding string
	if err := db.QueryRowContext(ctx, selectVersion).Scan(&application, &version, &objects, &key, &encoding); err != nil {
		return isMissing, hidden(ctx, db, err)
	}
	switch {
	case encoding != "UTF-8" && (application == applicationID || application == 0 && objects == 0):
		// Others count the bytes of a text in UTF-16, where all are twice as long.
		return isMissing, notOurs("a database in %s, want UTF-8", encoding)
	case application == 0 && version == 0 && objects == 0:
		return isEmpty, nil
	case application != applicationID:
		return isMissing, notOurs("a database of another application (application_id %#x, %d tables and indexes)", uint32(application), objects)
	case version > schemaVersion:
		return isMissing, fault.Flaw{
			Check: store.CheckLedger, What: fmt.Sprintf("written by a newer version (schema %d, this one knows %d)", version, schemaVersion),
			Remedy: "upgrade this program",
		}.Refuse()
	case version == 1 && key.String == primaryKey:
		return isMissing, fault.Flaw{
			Check: store.CheckLedger, What: "written by a program from before the first release (schema 1)",
			Remedy: "stop its workers, and begin with a new file",
		}.Refuse()
	case version < 1 || key.String != primaryKey:
		return isMissing, rebuilt(fmt.Sprintf("schema %d, primary key of WorkerLeases %q, want %q", version, key.String, primaryKey))
	}
	if !readOnly {
		if _, err := intruder(ctx, db); err != nil {
			return isMissing, err
		}
	}
	return isLedger, nil
}
