package storekit

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
)

// SQLOptions of NewSQL. DB, Dialect, Runner and Server are required.
type SQLOptions struct {
	// DB is the database. Close closes it.
	DB      *sql.DB
	Dialect Dialect
	// Runner performs the operations.
	Runner *Runner
	// Insert appends a record, whose document is given, in place of Dialect.Insert: it returns store.ErrConflict if
	// the key exists. nil: by Dialect.Insert.
	Insert func(ctx context.Context, r store.Record, document string) error
	// Server names the server in stamps, unless the statements do.
	Server string
	// Granularity of the server's clock. Default: 1 µs.
	Granularity time.Duration
	// Skew is that of stamps: how far the clocks of servers that may answer are apart.
	Skew time.Duration
	// Fitness is checked by Init after the tables are there.
	Fitness *Fitness
	// ReadOnly refuses whatever would change the ledger, for people who look.
	ReadOnly bool
}

// SQL is a ledger in two tables of an SQL database: a row for each record, with the key and the record as JSON, and
// a row for each presence. It is a store.Ledger, a store.Pager and a store.Roster.
type SQL struct {
	o SQLOptions
}

// NewSQL returns a ledger. It asks nothing of the database.
func NewSQL(o SQLOptions) *SQL { return &SQL{o} }

var (
	_ store.Ledger = (*SQL)(nil)
	_ store.Pager  = (*SQL)(nil)
	_ store.Roster = (*SQL)(nil)
)

// errReadOnly is the error of what would change a ledger that was opened for people who look.
var errReadOnly = NotStored(fmt.Errorf("%w: the ledger was opened for reading alone", store.ErrDenied))

// MayWrite returns the error of an operation that would change the ledger, if SQLOptions.ReadOnly is set. It wraps
// store.ErrDenied.
func (l *SQL) MayWrite(op string) error {
	if !l.o.ReadOnly {
		return nil
	}
	return l.o.Runner.Invalid(op, errReadOnly)
}

// Init creates the tables unless they exist, and checks that the database can keep a ledger.
func (l *SQL) Init(ctx context.Context) error {
	if err := l.MayWrite("init"); err != nil {
		return err
	}
	_, err := RunUnchecked(ctx, l.o.Runner, "init", "", func(ctx context.Context) (none struct{}, err error) {
		for _, text := range l.o.Dialect.Create {
			if _, err := l.o.DB.ExecContext(ctx, text); err != nil {
				return none, err
			}
		}
		if l.o.Fitness != nil {
			err = l.o.Fitness.Check(ctx)
		}
		return none, err
	})
	return err
}

// Append inserts a record unless its key exists.
func (l *SQL) Append(ctx context.Context, r store.Record) error {
	if err := l.MayWrite("append"); err != nil {
		return err
	}
	err := r.Check()
	var text []byte
	if err == nil {
		text, err = Encode(r)
	}
	if err != nil {
		return l.o.Runner.Invalid("append", err)
	}
	_, err = Run(ctx, l.o.Runner, "append", store.Key(r.WorkerType, r.Seq), func(ctx context.Context) (none struct{}, err error) {
		if l.o.Insert != nil {
			return none, l.o.Insert(ctx, r, string(text))
		}
		n, err := l.o.Dialect.Insert.exec(ctx, l.o.DB, r.WorkerType, r.Seq, string(text))
		if err == nil && n == 0 {
			err = store.ErrConflict
		}
		return none, err
	})
	return err
}

// Get returns the record at a key.
func (l *SQL) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return store.Record{}, l.o.Runner.Invalid("get", err)
	}
	return Run(ctx, l.o.Runner, "get", store.Key(workerType, seq), func(ctx context.Context) (store.Record, error) {
		var text sql.NullString
		err := l.o.Dialect.Get.row(ctx, l.o.DB, []any{&text}, workerType, seq)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return store.Record{}, store.ErrNotFound
		case err != nil:
			return store.Record{}, err
		}
		return decodeRow(workerType, seq, text), nil
	})
}

// tailed is the result of Tail.
type tailed struct {
	records []store.Record
	stamp   store.Stamp
}

// Tail returns the newest records, newest first, and the server's time, which is selected along with them.
func (l *SQL) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, store.Stamp{}, l.o.Runner.Invalid("tail", err)
	}
	got, err := Run(ctx, l.o.Runner, "tail", workerType, func(ctx context.Context) (got tailed, err error) {
		if limit < 1 {
			return got, nil
		}
		unreachable := false
		err = l.o.Dialect.Tail.rows(ctx, l.o.DB, func(rows *sql.Rows) error {
			var c clockRead
			var seq sql.NullInt64
			var text sql.NullString
			if err := rows.Scan(append(l.into(&c), &seq, &text)...); err != nil {
				return err
			}
			got.stamp = l.stamp(c)
			switch {
			case !seq.Valid:
			case seq.Int64 > store.MaxSeq && !unreachable:
				unreachable = true
				got.records = append(got.records, store.Record{WorkerType: workerType, Defect: fmt.Sprintf("seq %d can't be followed", seq.Int64)})
			case seq.Int64 >= 1 && seq.Int64 <= store.MaxSeq:
				got.records = append(got.records, decodeRow(workerType, seq.Int64, text))
			}
			return nil
		}, workerType, int64(limit))
		slices.SortStableFunc(got.records, func(a, b store.Record) int {
			if (a.Seq == 0) != (b.Seq == 0) {
				return cmp.Compare(a.Seq, b.Seq) // The unreachable one comes first.
			}
			return cmp.Compare(b.Seq, a.Seq)
		})
		return got, err
	})
	return got.records, got.stamp, err
}

// Page returns the oldest records above a Seq, oldest first.
func (l *SQL) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, l.o.Runner.Invalid("page", err)
	}
	return Run(ctx, l.o.Runner, "page", workerType, func(ctx context.Context) (records []store.Record, err error) {
		limit, after := min(limit, store.MaxPage), max(after, 0)
		if limit < 1 || after >= store.MaxSeq {
			return nil, nil
		}
		err = l.o.Dialect.Page.rows(ctx, l.o.DB, func(rows *sql.Rows) error {
			var seq int64
			var text sql.NullString
			if err := rows.Scan(&seq, &text); err != nil {
				return err
			}
			records = append(records, decodeRow(workerType, seq, text))
			return nil
		}, workerType, after, int64(limit))
		return records, err
	})
}

// Trim deletes the oldest records below a Seq, but never the head.
func (l *SQL) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	if err := l.MayWrite("trim"); err != nil {
		return 0, err
	}
	if err := store.CheckWorkerType(workerType); err != nil {
		return 0, l.o.Runner.Invalid("trim", err)
	}
	return Run(ctx, l.o.Runner, "trim", workerType, func(ctx context.Context) (int, error) {
		n, err := l.o.Dialect.Trim.exec(ctx, l.o.DB, workerType, before, int64(store.TrimBatch))
		return int(n), err
	})
}

// WorkerTypes lists the worker types that have records, in byte order.
func (l *SQL) WorkerTypes(ctx context.Context) ([]string, error) {
	return Run(ctx, l.o.Runner, "list", "", func(ctx context.Context) (types []string, err error) {
		err = l.o.Dialect.WorkerTypes.rows(ctx, l.o.DB, func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			types = append(types, name)
			return err
		})
		slices.Sort(types)
		return slices.Compact(types), err
	})
}

// Now reads the server's clock.
func (l *SQL) Now(ctx context.Context) (store.Stamp, error) {
	return Run(ctx, l.o.Runner, "now", "", func(ctx context.Context) (store.Stamp, error) {
		var c clockRead
		err := l.o.Dialect.Now.row(ctx, l.o.DB, l.into(&c))
		return l.stamp(c), err
	})
}

// Close ends the operations in progress, and closes the database.
func (l *SQL) Close(ctx context.Context) error { return l.o.Runner.Close(ctx, l.o.DB.Close) }

// clockRead is a reading of the server's clock.
type clockRead struct {
	micros int64
	server string
}

// into is where the columns of a reading go.
func (l *SQL) into(c *clockRead) []any {
	if l.o.Dialect.Named {
		return []any{&c.micros, &c.server}
	}
	return []any{&c.micros}
}

// stamp is the stamp of a reading.
func (l *SQL) stamp(c clockRead) store.Stamp {
	return store.Stamp{
		Time: time.UnixMicro(c.micros).UTC(), Granularity: cmp.Or(l.o.Granularity, time.Microsecond), Skew: l.o.Skew,
		Server: cmp.Or(c.server, l.o.Server), Clock: c.server,
	}
}

// decodeRow reads the document of a row, which is missing if it is NULL: because the row has none, or a larger one
// than any record's.
func decodeRow(workerType string, seq int64, text sql.NullString) store.Record {
	if !text.Valid {
		return document.Defective(workerType, seq, errors.New("the record is missing, or far larger than any"))
	}
	return Decode(workerType, seq, []byte(text.String))
}
