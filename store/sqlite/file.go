package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	driver "modernc.org/sqlite"

	"github.com/slotlease/slotlease/store"
)

// file is the open file. Its handle has one connection: SQLite lets one writer
// in at a time anyway, and the callers queue better in the process than for the
// lock.
type file struct {
	db   *sql.DB
	info os.FileInfo
}

// state is what was found at a path.
type state int

const (
	isMissing state = iota
	isEmpty         // may become a ledger
	isLedger
)

// use returns the open file, opening it (and, unless ReadOnly, creating it) if
// that hasn't been done or another file has its name now.
func (l *Ledger) use(ctx context.Context) (*file, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, store.ErrClosed
	}
	if l.file != nil {
		if l.file.here(l.o.Path) == nil {
			return l.file, nil
		}
		_ = l.file.close()
		l.file = nil
	}
	found, err := inspect(ctx, l.o.Path)
	if err != nil {
		return nil, err
	}
	if found != isLedger {
		// A ledger that was there and is gone is not made anew: its leases may be
		// worked under, and an empty file would give them away once more.
		if l.o.ReadOnly || l.used {
			return nil, errMissing
		}
		if err := create(ctx, l.o.Path); err != nil {
			return nil, err
		}
	}
	l.file, err = openFile(ctx, l.o.Path, l.o.ReadOnly)
	l.used = l.used || err == nil
	return l.file, err
}

// write runs act on the open file, unless the ledger is for reading only.
func (l *Ledger) write(ctx context.Context, act func(f *file) error) error {
	if l.o.ReadOnly {
		return errReadOnly
	}
	f, err := l.use(ctx)
	if err != nil {
		return err
	}
	return act(f)
}

// openFile opens a ledger that is there.
func openFile(ctx context.Context, path string, readOnly bool) (f *file, err error) {
	query := "mode=rw&_synchronous=FULL"
	if readOnly {
		// Not mode=ro, which would leave its -wal and -shm files behind.
		query = "mode=rw&_query_only=1"
	}
	f = &file{}
	if f.info, err = os.Stat(path); err != nil {
		return nil, err
	}
	if f.db, err = connect(path, query); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.close()
			f = nil
		}
	}()
	f.db.SetMaxOpenConns(1)
	pragma := "PRAGMA journal_mode = WAL"
	if readOnly {
		pragma = "PRAGMA journal_mode"
	}
	var mode string
	if err := f.db.QueryRowContext(ctx, pragma).Scan(&mode); err != nil {
		return nil, err
	}
	if mode != "wal" && !readOnly {
		return nil, fmt.Errorf("%w: the file system doesn't support WAL mode (it stays %s): use a local disk", store.ErrRefused, mode)
	}
	return f, f.here(path)
}

// here reports whether the path still names the file. It doesn't open it.
func (f *file) here(path string) error {
	info, err := os.Stat(path)
	if err != nil || !os.SameFile(info, f.info) {
		return errReplaced
	}
	return nil
}

// close is a no-op for a file that was never opened.
func (f *file) close() error {
	if f == nil {
		return nil
	}
	return f.db.Close()
}

// records runs a query for all columns.
func (f *file) records(ctx context.Context, query string, args ...any) (records []store.Record, err error) {
	rows, err := f.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	for rows.Next() {
		row, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return nil, err
		}
		records = append(records, decode(row))
	}
	return records, rows.Err()
}

// strings runs a query for one column of text.
func (f *file) strings(ctx context.Context, query string) (all []string, err error) {
	rows, err := f.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// connect prepares a handle; SQLite opens the file at its first use. The busy
// wait is ours, see patiently.
func connect(path, query string) (*sql.DB, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	dsn := url.URL{
		Scheme:   "file",
		Path:     slashed,
		RawQuery: query + "&_busy_timeout=0&_error_rc=1&_defensive=1&_dqs=0&_pragma=trusted_schema(0)",
	}
	c, err := driver.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// inspect says what is at a path, and leaves it untouched.
//
// It looks through SQLite, never by opening the file itself: closing a
// descriptor of its own would drop the locks of every other handle of this
// process on the file. A file with a log or a journal is looked at in read-only
// mode, in which SQLite can't replay it; one without is opened for writing,
// though nothing is written, since only then SQLite cleans up behind itself.
func inspect(ctx context.Context, path string) (found state, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return isMissing, fmt.Errorf("directory of the file: %w", err)
		}
		return isMissing, nil
	case err != nil:
		return isMissing, err
	case !info.Mode().IsRegular():
		return isMissing, fmt.Errorf("%w: not a regular file", store.ErrRefused)
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return isMissing, err
	}
	mode := "mode=rw&_query_only=1"
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Stat(target + suffix); err == nil {
			mode = "mode=ro"
		}
	}
	db, err := connect(path, mode)
	if err != nil {
		return isMissing, err
	}
	defer func() {
		if e := db.Close(); err == nil {
			err = e
		}
	}()
	return identify(ctx, db)
}

// identify reads the marks of a ledger.
func identify(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) (state, error) {
	var application, version, objects int64
	var key sql.NullString
	if err := db.QueryRowContext(ctx, selectVersion).Scan(&application, &version, &objects, &key); err != nil {
		return isMissing, err
	}
	switch {
	case application == 0 && version == 0 && objects == 0:
		return isEmpty, nil
	case application != applicationID:
		return isMissing, fmt.Errorf("%w: a database of another application (application_id %#x, %d tables and indexes): choose another file", store.ErrRefused, uint32(application), objects)
	case version > schemaVersion:
		return isMissing, fmt.Errorf("%w: written by a newer version (schema %d, this one knows %d): upgrade this program", store.ErrRefused, version, schemaVersion)
	case version != schemaVersion || key.String != primaryKey:
		return isMissing, fmt.Errorf("%w: damaged: schema %d, primary key of WorkerLeases %q, want %q", store.ErrRefused, version, key.String, primaryKey)
	}
	return isLedger, nil
}
