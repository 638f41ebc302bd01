package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"

	code "modernc.org/sqlite/lib"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
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
	l.mu.Lock()
	f, used, closed, unshared := l.file, l.used, l.closed, l.unshared
	l.mu.Unlock()
	switch {
	case closed:
		return nil, store.ErrClosed
	case unshared != nil:
		return nil, before(unshared)
	case f != nil:
		err := f.check()
		if err == nil && !f.one.spent() {
			return f, nil
		}
		if err != nil && !l.o.ReadOnly {
			return nil, before(l.found(err))
		}
		l.put(nil)
		_ = f.close()
	}
	if used.path != "" && !l.o.ReadOnly {
		if err := used.check(false); err != nil {
			return nil, before(l.found(err))
		}
	}
	found, err := l.inspect(ctx)
	if err != nil {
		return nil, err
	}
	// A ledger that existed and was removed is not created again: workers may still
	// work under its leases, and an empty file would grant them a second time.
	if found < isOutdated && (l.o.ReadOnly || used.path != "") {
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
	if used.path != "" && !l.o.ReadOnly {
		if err := used.check(false); err != nil {
			_ = f.close()
			return nil, before(l.found(err))
		}
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
	// Only reading opens the log.
	if err := db.QueryRowContext(ctx, "SELECT 1 FROM WorkerLeases LIMIT 1").Scan(new(int)); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	schema, err := intruder(ctx, db)
	if err != nil {
		return nil, err
	}
	f.schema.Store(schema)
	log, err := filesAt(path, true)
	switch {
	case f.one.spent():
		return nil, errSpent
	case errors.Is(err, fs.ErrNotExist):
		return nil, otherLog(f.files)
	case err != nil:
		return nil, err
	}
	f.files = log
	if err := share(log); err != nil {
		return nil, err
	}
	return f, nil
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
func (f *file) records(ctx context.Context, q query, args ...any) (records []store.Record, err error) {
	text, err := f.text(ctx, q)
	if err != nil {
		return nil, err
	}
	return rows(ctx, f.db, func(r *sql.Rows) (store.Record, error) { return scan(r) }, text, args...)
}

// text is a query for the schema of the file.
func (f *file) text(ctx context.Context, q query) (string, error) {
	if !f.readOnly {
		return q.text, nil
	}
	// The file may still have schema 1. If it is upgraded right after this, the query for
	// schema 1 still works.
	var version int64
	if err := f.db.QueryRowContext(ctx, selectSchema).Scan(&version); err != nil {
		return "", err
	}
	if version == 1 {
		return q.textSchema1, nil
	}
	return q.text, nil
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
