package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// insert appends a record.
func (l *Ledger) insert(ctx context.Context, r store.Record, document string) error {
	c, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	var k conn
	if err := c.Raw(func(own any) error { k = *own.(*conn); return nil }); err != nil {
		return err
	}
	do := l.insertPlain
	if k.mariadb && !l.plain {
		do = l.insertReturning
	}
	text := `INSERT INTO LEDGER (worker_type, seq, document) VALUES (?, ? + 0 * (CHECKED), ?)`
	if k.statementLog {
		// A replica would execute it, and fail.
		text = `INSERT INTO LEDGER (worker_type, seq, document) VALUES (?, ?, ?)`
	}
	switch err := do(ctx, c, text, r, document); {
	case isKey(err, l.address.table):
		return l.conflict(ctx, c, r, err)
	default:
		return err
	}
}

// insertReturning inserts a row, and checks what became of it: a trigger may change it without a word.
func (l *Ledger) insertReturning(ctx context.Context, c *sql.Conn, text string, r store.Record, document string) error {
	var at int64
	var server string
	same, stored := false, 0
	err := each(ctx, c, func(rows *sql.Rows) error {
		stored++
		return rows.Scan(&same, &at, &server)
	}, l.filled(text+` RETURNING worker_type = ? AND seq = ? AND document = CAST(? AS BINARY), CLOCK, COALESCE(SERVER, '')`), r.WorkerType, r.Seq, document, r.WorkerType, r.Seq, document)
	if err != nil {
		return err
	}
	l.tell(ctx, at, server)
	if !same || stored != 1 {
		return l.changed(ctx, c)
	}
	return nil
}

// insertPlain inserts a row, and reads what became of it by a second statement.
func (l *Ledger) insertPlain(ctx context.Context, c *sql.Conn, text string, r store.Record, document string) error {
	result, err := c.ExecContext(ctx, l.filled(text), r.WorkerType, r.Seq, document)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(fmt.Errorf("an insert affected %d rows", n), err)
	}
	var at int64
	var server string
	same := false
	err = each(ctx, c, func(rows *sql.Rows) error { return rows.Scan(&same, &at, &server) },
		l.filled(`SELECT document = CAST(? AS BINARY), CLOCK, SERVER FROM LEDGER WHERE worker_type = ? AND seq = ? UNION ALL SELECT NULL, NULL, NULL FROM DUAL WHERE ASTRAY`),
		document, r.WorkerType, r.Seq)
	if err != nil {
		return afterwards(err)
	}
	l.tell(ctx, at, server)
	if !same {
		return l.changed(ctx, c)
	}
	return nil
}

// afterwards is the error of what follows an insert. Whatever it means by itself, the record may be stored.
func afterwards(err error) error {
	return fmt.Errorf("what was inserted can't be read: %s", err.Error())
}

// tell puts the time of an insert on the caller's receipt.
func (l *Ledger) tell(ctx context.Context, micros int64, server string) {
	if micros <= 0 {
		return
	}
	s := store.Stamp{Time: time.UnixMicro(micros).UTC(), Granularity: time.Microsecond, Server: cmp.Or(server, l.address.place())}
	store.Tell(ctx, l.skewed(s))
}

// changed is the error of a record that was stored as another one.
func (l *Ledger) changed(ctx context.Context, c *sql.Conn) error {
	if f, err := l.lookBy(ctx, c); err == nil {
		if flaws := l.tableFlaws(f.ledger); len(flaws) > 0 {
			return flaws[0].Refuse()
		}
	}
	return storekit.Flaw{
		Check: store.CheckConstraints, Remedy: "drop it",
		What: fmt.Sprintf("table %s.%s has a trigger that changes records, which the user may not see", l.address.Database, l.address.table),
	}.Refuse()
}

// conflict is the error of an insert whose key was taken, as the server said with an error. That a row has the key is
// looked at: the key may be that of another table which a trigger writes to.
func (l *Ledger) conflict(ctx context.Context, c *sql.Conn, r store.Record, said error) error {
	found := false
	err := each(ctx, c, func(*sql.Rows) error { found = true; return nil },
		l.filled(`SELECT 1 FROM LEDGER WHERE worker_type = ? AND seq = ? UNION ALL SELECT NULL FROM DUAL WHERE ASTRAY`), r.WorkerType, r.Seq)
	switch {
	case err != nil:
		return err
	case found:
		return store.ErrConflict
	}
	e, _ := errors.AsType[*mysql.MySQLError](said)
	return fmt.Errorf("the server says that the key is taken, but there is no record: a trigger may write to another table (%s)", e.Message)
}

// each visits the rows of a statement, and waits for its end.
func each(ctx context.Context, c *sql.Conn, visit func(rows *sql.Rows) error, text string, args ...any) error {
	rows, err := c.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := visit(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
