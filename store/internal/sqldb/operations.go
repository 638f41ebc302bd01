package sqldb

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
	"github.com/slotlease/slotlease/store/storekit"
)

// errReadOnly is the error of what would change a ledger that was opened for people who look.
var errReadOnly = storekit.NotStored(fmt.Errorf("%w: the ledger was opened for reading alone", store.ErrDenied))

// mayWrite returns the error of an operation that would change the ledger, if it was opened for reading alone.
func (l *Ledger[F]) mayWrite(op string) error {
	if !l.c.parts.ReadOnly {
		return nil
	}
	return l.c.Runner.Invalid(op, errReadOnly)
}

// Append inserts a record unless its key exists.
func (l *Ledger[F]) Append(ctx context.Context, r store.Record) error { return l.append(ctx, r, nil) }

// AppendAfter inserts a record right above prev, unless its key exists.
func (l *Ledger[F]) AppendAfter(ctx context.Context, r, prev store.Record) error {
	if err := store.CheckAfter(r, prev); err != nil {
		return l.c.Runner.Invalid("append", err)
	}
	return l.append(ctx, r, &prev)
}

// append inserts a record unless its key exists; right above prev, unless that is nil.
func (l *Ledger[F]) append(ctx context.Context, r store.Record, prev *store.Record) error {
	if err := l.mayWrite("append"); err != nil {
		return err
	}
	err := r.Check()
	var text []byte
	if err == nil {
		text, err = storekit.Encode(r)
	}
	if err != nil {
		return l.c.Runner.Invalid("append", err)
	}
	_, err = storekit.Run(ctx, l.c.Runner, "append", store.Key(r.WorkerType, r.Seq), func(ctx context.Context) (none struct{}, err error) {
		storekit.Unsent(ctx) // up to the first statement: see the connections
		return none, l.c.parts.Insert(ctx, r, prev, string(text))
	})
	return err
}

// Get returns the record at a key.
func (l *Ledger[F]) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return store.Record{}, l.c.Runner.Invalid("get", err)
	}
	return storekit.Run(ctx, l.c.Runner, "get", store.Key(workerType, seq), func(ctx context.Context) (store.Record, error) {
		var text sql.NullString
		err := l.c.parts.Dialect.Get.row(ctx, l.c.DB, []any{&text}, workerType, seq)
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
func (l *Ledger[F]) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, store.Stamp{}, l.c.Runner.Invalid("tail", err)
	}
	got, err := storekit.Run(ctx, l.c.Runner, "tail", workerType, func(ctx context.Context) (got tailed, err error) {
		if limit < 1 {
			return got, nil
		}
		unreachable := false
		err = l.c.parts.Dialect.Tail.rows(ctx, l.c.DB, func(rows *sql.Rows) error {
			var c clockRead
			var seq sql.NullInt64
			var text sql.NullString
			if err := rows.Scan(&c.micros, &c.server, &seq, &text); err != nil {
				return err
			}
			got.stamp = l.c.stamp(c)
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
func (l *Ledger[F]) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, l.c.Runner.Invalid("page", err)
	}
	return storekit.Run(ctx, l.c.Runner, "page", workerType, func(ctx context.Context) (records []store.Record, err error) {
		limit, after := min(limit, store.MaxPage), max(after, 0)
		if limit < 1 || after >= store.MaxSeq {
			return nil, nil
		}
		err = l.c.parts.Dialect.Page.rows(ctx, l.c.DB, func(rows *sql.Rows) error {
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
func (l *Ledger[F]) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	if err := l.mayWrite("trim"); err != nil {
		return 0, err
	}
	if err := store.CheckWorkerType(workerType); err != nil {
		return 0, l.c.Runner.Invalid("trim", err)
	}
	return storekit.Run(ctx, l.c.Runner, "trim", workerType, func(ctx context.Context) (int, error) {
		n, err := l.c.parts.Dialect.Trim.exec(ctx, l.c.DB, workerType, before, int64(store.TrimBatch))
		return int(n), err
	})
}

// WorkerTypes lists the worker types that have records, in byte order.
func (l *Ledger[F]) WorkerTypes(ctx context.Context) ([]string, error) {
	return storekit.Run(ctx, l.c.Runner, "list", "", func(ctx context.Context) (types []string, err error) {
		err = l.c.parts.Dialect.WorkerTypes.rows(ctx, l.c.DB, func(rows *sql.Rows) error {
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
func (l *Ledger[F]) Now(ctx context.Context) (store.Stamp, error) {
	return storekit.Run(ctx, l.c.Runner, "now", "", func(ctx context.Context) (store.Stamp, error) {
		var c clockRead
		err := l.c.parts.Dialect.Now.row(ctx, l.c.DB, []any{&c.micros, &c.server})
		if err != nil {
			return store.Stamp{}, err
		}
		return l.c.stamp(c), nil
	})
}

// clockRead is a reading of the server's clock: in µs, and the process whose clock it is.
type clockRead struct {
	micros int64
	server string
}

// stamp is the stamp of a reading.
func (c *Core[F]) stamp(r clockRead) store.Stamp {
	return c.Stamped(store.Stamp{Time: time.UnixMicro(r.micros).UTC(), Granularity: time.Microsecond, Server: r.server})
}

// decodeRow reads the document of a row, which is missing if it is NULL: because the row has none, or a larger one
// than any record's.
func decodeRow(workerType string, seq int64, text sql.NullString) store.Record {
	if !text.Valid {
		return document.Defective(workerType, seq, errors.New("the record is missing, or far larger than any"))
	}
	return storekit.Decode(workerType, seq, []byte(text.String))
}
