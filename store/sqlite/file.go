package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	code "modernc.org/sqlite/lib"

	"github.com/slotlease/slotlease/store"
)

// file is the open file. Its handle has one connection, because SQLite allows only one
// writer at a time, and queueing in the process is better than waiting for the lock.
type file struct {
	db       *sql.DB
	one      *connector // of db
	files    files
	readOnly bool
	reading  reading // zero unless readOnly
	// schema is the version of the schema in which intruder has found nothing.
	schema atomic.Int64
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
	if f.files, err = filesAt(path, false); err != nil {
		return nil, err
	}
	if f.one, err = connectorTo(path, query+defensive); err != nil {
		return nil, err
	}
	f.one.single = true
	db := sql.OpenDB(f.one)
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
	if err := f.files.check(false); err != nil {
		return nil, before(err)
	}
	if readOnly {
		return f, nil
	}
	return f, f.claim(ctx)
}

// claim looks at the tables of a file that was opened for writing, and claims it for its log.
func (f *file) claim(ctx context.Context) error {
	// Only reading opens the log.
	if err := f.db.QueryRowContext(ctx, "SELECT 1 FROM WorkerLeases LIMIT 1").Scan(new(int)); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	schema, err := intruder(ctx, f.db)
	if err != nil {
		return err
	}
	f.schema.Store(schema)
	log, err := filesAt(f.files.path, true)
	switch {
	case f.one.spent():
		return errSpent
	case errors.Is(err, fs.ErrNotExist):
		return otherLog(f.files)
	case err != nil:
		return err
	}
	f.files = log
	return share(log)
}

// check is files.check. The log of a connection that was closed may be gone.
func (f *file) check() error {
	err := f.files.check(true)
	if err != nil && f.one.spent() {
		return f.files.check(false)
	}
	return err
}

// maxBrief is how many records are read without an interruption at most.
const maxBrief = 100

// brief asks for what takes no time to find, and so isn't interrupted: that would close the connection. Only
// the wait for the connection ends with the context.
func brief[T any](ctx context.Context, f *file, ask func(ctx context.Context, conn *sql.Conn) (T, error)) (answer T, err error) {
	conn, err := f.db.Conn(ctx)
	if err != nil {
		return answer, err
	}
	defer func() { _ = conn.Close() }()
	return ask(context.WithoutCancel(ctx), conn)
}

// guards are the last arguments of insertRecord, and those of selectGuards.
func (l *Ledger) guards(schema int64) []any {
	var offset any
	if mine := l.line.Load(); mine != nil {
		offset = mine.offset.Microseconds()
	}
	return []any{schema, offset, offset}
}

// kept is why an append has inserted nothing, or nil if it is to be repeated: the tables were
// changed, and still are those of a ledger.
func (l *Ledger) kept(ctx context.Context, f *file, schema int64) error {
	if l.line.Load() != nil {
		if _, err := l.lineOf(ctx, f); err != nil {
			return err
		}
	}
	changed, err := f.changed(ctx, schema)
	if err == nil && !changed {
		err = errors.New("nothing was inserted, and nothing shows why")
	}
	return err
}

// changed reports whether the schema is another than a given version, and notes which. It
// refuses tables that are no longer a ledger's.
func (f *file) changed(ctx context.Context, schema int64) (bool, error) {
	version, err := intruder(ctx, f.db)
	if err != nil {
		return false, err
	}
	f.schema.Store(version)
	return version != schema, nil
}

// blamed is the error of a statement that changed nothing, or read nothing. If the tables are no longer a
// ledger's, that is why.
func (f *file) blamed(ctx context.Context, err error) error {
	if c := resultCode(err) & 0xff; c != code.SQLITE_ERROR && c != code.SQLITE_CONSTRAINT || resultCode(err) == code.SQLITE_CONSTRAINT_PRIMARYKEY {
		return err
	}
	if _, found := intruder(ctx, f.db); errors.Is(found, store.ErrRefused) {
		return found
	}
	return err
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
func (f *file) records(ctx context.Context, query string, args ...any) (records []store.Record, err error) {
	return rows(ctx, f.db, func(r *sql.Rows) (store.Record, error) { return scan(r) }, query, args...)
}

// scan reads the columns of a record, and what a query has after them.
func scan(r *sql.Rows, more ...any) (store.Record, error) {
	row, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		to[i] = &row[i]
	}
	if err := r.Scan(append(to, more...)...); err != nil {
		return store.Record{}, err
	}
	return decode(row), nil
}

// rowser is a database, or a transaction.
type rowser interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// rows runs a query, and scans each row.
func rows[T any](ctx context.Context, db rowser, scan func(r *sql.Rows) (T, error), query string, args ...any) (all []T, err error) {
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
