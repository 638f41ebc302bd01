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
	"runtime"
	"strings"
	"syscall"

	code "modernc.org/sqlite/lib"

	"github.com/slotlease/slotlease/store"
)

// Backup writes a copy of the ledger, as of some moment during the call, to a file at path,
// which must not exist. The copy is a whole ledger in one file. Workers go on meanwhile: they
// neither wait for it nor stop. A handle with ReadOnly can make one.
//
// The copy is written beside path, under its name with .part and a number, and synced before
// it gets its name, which is on the disk then, too. After an error neither is there, unless the
// context ended: what is under way then ends in the background, and perhaps the copy is there, or
// will be; it is whole if so. After a crash there are perhaps .part files. It has the rights of the
// ledger.
//
// An error wraps fs.ErrExist if path exists, or a file with its name and -wal, -shm or -journal
// at the end, which SQLite would take for part of the copy; and fs.ErrInvalid if path itself
// ends so. Where a file of the copy can't be written, it wraps a *fs.PathError whose Path begins
// with path, made absolute. All else is about the ledger.
//
// See "Backups" in the package documentation before you restore one: leases that were granted
// after the backup are forgotten then.
func (l *Ledger) Backup(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("sqlite: back up %s: %w", l.o.Path, err)
	}
	_, err = do(ctx, l, "back up", l.o.Path, func(ctx context.Context) (struct{}, error) {
		if err := isFree(path); err != nil {
			return struct{}{}, err
		}
		if found, err := l.inspect(ctx); err != nil || found < isLedger {
			return struct{}{}, cmp.Or(err, errMissing) // Nothing is created.
		}
		f, err := l.use(ctx)
		if err != nil {
			return struct{}{}, err
		}
		if f.reading.alone() {
			defer func() { _ = f.close() }()
		}
		return struct{}{}, l.backup(ctx, path)
	})
	return err
}

// beside is what SQLite appends to the name of a database for the files that it keeps beside it.
var beside = []string{"-wal", "-shm", "-journal"}

// isFree demands that neither a file nor one that SQLite would take for part of it is there.
// What an earlier file of that name has left, as after a crash, would be written over the copy.
func isFree(path string) error {
	for _, suffix := range beside {
		if strings.HasSuffix(strings.ToLower(path), suffix) {
			return fmt.Errorf("%w: files beside a database have %s at the end: choose another name", &fs.PathError{Op: "create", Path: path, Err: fs.ErrInvalid}, suffix)
		}
	}
	if _, err := os.Lstat(path); err == nil {
		return taken(path)
	}
	for _, suffix := range beside {
		if _, err := os.Lstat(path + suffix); err == nil {
			return fmt.Errorf("%w: SQLite would take it for part of the copy: remove it, or choose another name", &fs.PathError{Op: "keep", Path: path + suffix, Err: fs.ErrExist})
		}
	}
	return nil
}

func taken(path string) error {
	return fmt.Errorf("%w: choose another name", &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
}

// backup copies a ledger that is there.
func (l *Ledger) backup(ctx context.Context, path string) (err error) {
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part*") // SQLite takes an empty file.
	if err != nil {
		return err
	}
	defer func() {
		for _, suffix := range append([]string{""}, beside...) {
			_ = os.Remove(part.Name() + suffix) // SQLite leaves a journal on a disk that is full.
		}
	}()
	defer func() { err = cmp.Or(err, part.Close()) }()
	switch err := l.vacuum(ctx, part.Name()); {
	case isUnwritten(err):
		return &fs.PathError{Op: "write", Path: path, Err: err}
	case err != nil:
		return err
	}
	if err := check(ctx, part.Name()); err != nil {
		return fmt.Errorf("the copy is no whole ledger: %w", err)
	}
	// Only now: SQLite opens it for writing.
	if err := part.Chmod(readable(l.o.Path)); err != nil {
		return err
	}
	if err := part.Sync(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err() // The caller has left.
	}
	if err := isFree(path); err != nil {
		return err
	}
	if err := publish(part.Name(), path); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		_ = os.Remove(path)
		return &fs.PathError{Op: "sync the name of", Path: path, Err: err}
	}
	return nil
}

// syncDir has the names of the files in a directory reach the disk, where the system does that.
var syncDir = func(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // There may be no right to read it, or no such thing here.
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); runtime.GOOS != "windows" && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// isUnwritten reports that SQLite couldn't write. Of the files that a backup has open, it
// writes only the copy.
func isUnwritten(err error) bool {
	switch c := resultCode(err); c {
	case code.SQLITE_IOERR_WRITE, code.SQLITE_IOERR_FSYNC, code.SQLITE_IOERR_TRUNCATE, code.SQLITE_IOERR_DIR_FSYNC:
		return true
	default:
		return c&0xff == code.SQLITE_FULL
	}
}

// readable are the rights of a copy: those of the ledger.
func readable(path string) os.FileMode {
	if info, err := stat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o600
}

// vacuum has SQLite copy the ledger into an empty file, by a connection of its own, so that
// operations of this handle don't wait for it.
func (l *Ledger) vacuum(ctx context.Context, to string) (err error) {
	mode, how := "mode=rw", reading{}
	if l.o.ReadOnly {
		if how, err = readingOf(l.o.Path); err != nil {
			return err
		}
		defer how.release()
		if how.mode != lookForWriting {
			mode = how.mode
		}
	}
	db, err := connect(l.o.Path, mode)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, db.Close()) }()
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return how.check(err)
}

// check demands that a copy is a ledger without damage.
func check(ctx context.Context, path string) (err error) {
	db, err := connect(path, lookAlone)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, db.Close()) }()
	switch found, err := identify(ctx, db, true); {
	case err != nil:
		return err
	case found < isLedger:
		return errMissing
	}
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", store.ErrRefused, verdict)
	}
	return nil
}

// publish gives a file its name, unless that is taken.
func publish(part, path string) error {
	err := os.Link(part, path)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return taken(path)
	}
	// There are no hard links here. An empty file keeps the name meanwhile.
	empty, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = cmp.Or(empty.Close(), os.Rename(part, path))
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}
