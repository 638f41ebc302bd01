//go:build sqlserver

package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// insert appends a record, and checks what became of it. One round trip does both.
func (l *Ledger) insert(ctx context.Context, r store.Record, document string) error {
	c, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	got, err := insertOn(ctx, c, l.insertion(), r.WorkerType, r.Seq, document)
	switch {
	case err != nil && l.isKey(err):
		return l.conflict(ctx, c, r, err)
	case err != nil:
		return err
	}
	return l.settle(ctx, got)
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
		err = afterwards(err)
	}
	return got, err
}

// afterwards is the error of what follows an insert. Whatever it means by itself, the record may be stored.
func afterwards(err error) error {
	return fmt.Errorf("what was inserted can't be read: %s", err.Error())
}

// settle is the outcome of an insert without an error.
func (l *Ledger) settle(ctx context.Context, got insertion) error {
	if got.stored != 1 {
		return fmt.Errorf("an insert stored %d rows", got.stored)
	}
	if got.read != 1 || !got.same {
		return storekit.Flaw{
			Check: store.CheckConstraints, Remedy: "drop it",
			What: fmt.Sprintf("table %s has a trigger or a row-level security policy that changes or hides records, which the user may not see", l.address.name()),
		}.Refuse()
	}
	store.Tell(ctx, l.skewed(store.Stamp{Time: time.UnixMicro(got.micros).UTC(), Granularity: time.Microsecond, Server: got.server}))
	return nil
}

// conflict is the error of an insert whose key was taken, as the server said with an error. That a row has the key is
// looked at.
func (l *Ledger) conflict(ctx context.Context, c *sql.Conn, r store.Record, said error) error {
	found := 0
	rows, err := c.QueryContext(ctx, l.presence(), r.WorkerType, r.Seq)
	if err == nil {
		for rows.Next() {
			found++
		}
		err = errors.Join(rows.Err(), rows.Close())
	}
	switch {
	case err != nil:
		return err
	case found > 0:
		return store.ErrConflict
	}
	e, _ := errors.AsType[mssql.Error](said)
	return fmt.Errorf("the server says that the key is taken, but there is no record: a row-level security policy may hide it, or it was deleted since (%s)", e.Message)
}
