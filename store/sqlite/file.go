package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	driver "modernc.org/sqlite"

	"github.com/slotlease/slotlease/store"
)

// file is the open file. Its handle has one connection, because SQLite allows only one
// writer at a time, and queueing in the process is better than waiting for the lock.
type file struct {
	db       *sql.DB
	info     os.FileInfo
	readOnly bool
	reading  reading // zero unless readOnly
}

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
		return nil, ended(ctx)
	}
	l.mu.Lock()
	f, used, closed := l.file, l.used, l.closed
	l.mu.Unlock()
	switch {
	case closed:
		return nil, store.ErrClosed
	case f != nil && f.here(l.o.Path) == nil:
		return f, nil
	case f != nil:
		l.put(nil)
		_ = f.close()
	}
	found, err := inspect(ctx, l.o.Path, l.o.ReadOnly)
	if err != nil {
		return nil, err
	}
	// A ledger that existed and was removed is not created again: workers may still
	// work under its leases, and an empty file would grant them a second time.
	if found < isOutdated && (l.o.ReadOnly || used) {
		return nil, errMissing
	}
	if found != isLedger && !l.o.ReadOnly {
		if err := establish(ctx, l.o.Path, found < isOutdated); err != nil {
			return nil, err
		}
	}
	f, err = openFile(ctx, l.o.Path, l.o.ReadOnly)
	if err != nil {
		return nil, err
	}
	if !f.reading.alone() {
		l.put(f)
	}
	return f, nil
}

// put sets the open file. If the ledger was closed meanwhile, Close is waiting
// for this call and closes the file then.
func (l *Ledger) put(f *file) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file = f
	l.used = l.used || f != nil
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
	return do(ctx, l, op, key, func(ctx context.Context) (value T, err error) {
		f, err := l.use(ctx)
		if err != nil {
			return value, err
		}
		value, err = act(ctx, f)
		err = f.reading.check(err)
		if f.reading.alone() {
			_ = f.close()
		}
		return value, err
	})
}

// openFile opens a ledger that is there.
func openFile(ctx context.Context, path string, readOnly bool) (f *file, err error) {
	query, how := "mode=rw&_synchronous=FULL", reading{}
	if readOnly {
		if how, err = readingOf(path); err != nil {
			return nil, err
		}
		query = how.mode
	}
	f = &file{readOnly: readOnly, reading: how}
	defer func() {
		if err != nil {
			how.release()
		}
	}()
	if f.info, err = stat(path); err != nil {
		return nil, err
	}
	db, err := connect(path, query)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = how.check(err)
			_ = db.Close()
		}
	}()
	f.db = db
	db.SetMaxOpenConns(1)
	pragma := "PRAGMA journal_mode = WAL"
	if readOnly {
		pragma = "PRAGMA journal_mode"
	}
	var mode string
	if err := db.QueryRowContext(ctx, pragma).Scan(&mode); err != nil {
		return nil, err
	}
	if mode != "wal" && !readOnly {
		return nil, fmt.Errorf("%w: the file system doesn't support WAL mode (it stays %s): use a local disk", store.ErrRefused, mode)
	}
	if err := f.here(path); err != nil {
		return nil, err
	}
	return f, nil
}

// here reports whether the path still names the file. It doesn't open it.
func (f *file) here(path string) error {
	info, err := stat(path)
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
	defer f.reading.release()
	return f.db.Close()
}

// records runs a query for all columns.
func (f *file) records(ctx context.Context, q query, args ...any) (records []store.Record, err error) {
	text := q.text
	if f.readOnly {
		// The file may still have schema 1. If it is upgraded right after this, the
		// query for schema 1 still works.
		var version int64
		if err := f.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
			return nil, err
		}
		if version == 1 {
			text = q.textSchema1
		}
	}
	return rows(ctx, f.db, func(r *sql.Rows) (store.Record, error) {
		row, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := r.Scan(to...); err != nil {
			return store.Record{}, err
		}
		return decode(row), nil
	}, text, args...)
}

// rows runs a query, and scans each row.
func rows[T any](ctx context.Context, db *sql.DB, scan func(r *sql.Rows) (T, error), query string, args ...any) (all []T, err error) {
	r, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, r.Close()) }()
	for r.Next() {
		one, err := scan(r)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, r.Err()
}

// connect prepares a handle that can't damage the file. SQLite opens the file at the
// first use.
func connect(path, query string) (*sql.DB, error) {
	return dial(path, query+"&_defensive=1")
}

// dial is connect without the defence. SQLite's busy wait is off, see patiently.
func dial(path, query string) (*sql.DB, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	dsn := url.URL{
		Scheme:   "file",
		Path:     slashed,
		RawQuery: query + "&_busy_timeout=0&_error_rc=1&_dqs=0&_pragma=trusted_schema(0)",
	}
	c, err := driver.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}
