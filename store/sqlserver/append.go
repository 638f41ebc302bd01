//go:build sqlserver

package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// insert appends a record, right above prev unless that is nil, and checks what became of it. One round trip does both.
func (l *Ledger) insert(ctx context.Context, r store.Record, prev *store.Record, document string) error {
	err := l.insertThere(ctx, r, prev, document)
	if e, ok := ofStatement(err); ok && e.Number == codeTriggered {
		return l.nameTriggers(ctx, l.ask, err)
	}
	return err
}

// nameTriggers adds to an error, which has the table alone, what the table's triggers are, as far as the user may know.
func (l *Ledger) nameTriggers(ctx context.Context, ask asking, err error) error {
	r, failed := l.relation(ctx, ask, l.address.Table)
	if failed != nil || r == nil || len(r.Triggers) == 0 {
		return err
	}
	return fmt.Errorf("%s: %w", sqldb.Names(r.Triggers), err)
}

// insertThere is insert on a connection.
func (l *Ledger) insertThere(ctx context.Context, r store.Record, prev *store.Record, document string) error {
	c, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	args := []any{r.WorkerType, r.Seq, document}
	if prev != nil {
		args = append(args, prev.Claim, string(prev.Kind), prev.InstanceID)
	}
	got, err := insertOn(ctx, c, l.insertion(prev != nil), args...)
	switch {
	case err != nil && l.isKey(err):
		return l.core.Taken(ctx, c, err, l.presence(), r.WorkerType, r.Seq)
	case err != nil:
		return err
	}
	return l.settle(ctx, got, prev)
}

// insertion is what the server says of an insert.
type insertion struct {
	// stored are the rows that the insert says it has stored, and read those that were found then.
	stored, read int
	same         bool
	micros       int64
	server       string
}

// insertOn executes the statements of insertion. Once the server has said that a row is stored, no error means that it
// isn't.
func insertOn(ctx context.Context, c *sql.Conn, text string, args ...any) (got insertion, err error) {
	rows, err := c.QueryContext(ctx, text, args...)
	if err != nil {
		return got, err
	}
	err = func() error {
		for rows.Next() {
			got.stored++
		}
		if !rows.NextResultSet() {
			return rows.Err()
		}
		for rows.Next() {
			got.read++
			if err := rows.Scan(&got.same, &got.micros, &got.server); err != nil {
				return err
			}
		}
		for rows.NextResultSet() {
			for rows.Next() {
				continue // To the end: an error may come last.
			}
		}
		return rows.Err()
	}()
	err = errors.Join(err, rows.Close())
	if err != nil && got.stored+got.read > 0 {
		err = sqldb.Afterwards(err)
	}
	return got, err
}

// settle is the outcome of an insert without an error, right above prev unless that is nil.
func (l *Ledger) settle(ctx context.Context, got insertion, prev *store.Record) error {
	switch {
	case got.stored == 0 && prev != nil && got.read == 0:
		return store.WentBack(*prev)
	case got.stored == 0 && prev != nil:
		return store.ErrConflict // Somebody has stored it after the insert had found neither.
	case got.stored != 1:
		return fmt.Errorf("an insert stored %d rows", got.stored)
	case got.read != 1 || !got.same:
		return storekit.Flaw{
			Check: store.CheckConstraints, Remedy: "drop it",
			What: fmt.Sprintf("table %s has a trigger or a row-level security policy that changes or hides records, which the user may not see", l.core.Name()),
		}.Refuse()
	}
	l.core.Tell(ctx, got.micros, got.server)
	return nil
}
