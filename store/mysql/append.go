package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// errNothing: an insert found that the key was taken, or no record below.
var errNothing = errors.New("nothing was inserted")

// insertion is the statement that inserts a row. By rows that were there when it began it finds out that the key is taken, or that
// the record below isn't there: that takes no lock and, unlike a duplicate key, no second look. Where replicas execute statements it
// would lock what it reads, and so it does without for a record that follows none; and so does the check of the server, which replicas
// would fail.
//
// A node of a cluster executes a statement again that has lost to another node's, after it has returned a row already: then it must
// fail, as by a duplicate key, and may not find that there is nothing to insert.
func (c *conn) insertion(after bool) string {
	const into = `INSERT INTO LEDGER (worker_type, seq, document) `
	switch {
	case !after && c.statementLog:
		return into + `VALUES (?, ?, ?)`
	case !after && c.galera:
		return into + `VALUES (?, ? + 0 * (CHECKED), ?)`
	}
	text := into + `SELECT ?, ?, ? FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM LEDGER WHERE worker_type = ? AND seq = ?)`
	if after {
		text += ` AND EXISTS (SELECT 1 FROM LEDGER WHERE worker_type = ? AND seq = ? AND BELOW)`
	}
	if !c.statementLog {
		text += ` AND CHECKED > 0`
	}
	if c.galera {
		text = `SET STATEMENT wsrep_retry_autocommit = 0 FOR ` + text
	}
	return text
}

// insert appends a record; right above prev, unless that is nil.
func (l *Ledger) insert(ctx context.Context, r store.Record, prev *store.Record, document string) error {
	if err := l.stuck.full(); err != nil {
		return err
	}
	c, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	var k *conn
	if err := c.Raw(func(own any) error { k = own.(*conn); return nil }); err != nil {
		return errors.Join(err, c.Close())
	}
	if f := l.core.Known(); f != nil && f.semiSync() {
		storekit.Trouble(ctx, "the server may wait for a semi-synchronous replica that doesn't acknowledge: see its "+f.named("status")+" and "+f.named("clients"))
		if !k.proxied {
			return l.lasting(ctx, c, k, func(ctx context.Context) error { return l.insertOn(ctx, c, k, r, prev, document) })
		}
	}
	defer func() { _ = c.Close() }()
	return l.insertOn(ctx, c, k, r, prev, document)
}

// insertOn is insert on a connection.
func (l *Ledger) insertOn(ctx context.Context, c *sql.Conn, k *conn, r store.Record, prev *store.Record, document string) error {
	text, args := k.insertion(prev != nil), []any{r.WorkerType, r.Seq, document, r.WorkerType, r.Seq}
	switch {
	case prev != nil:
		args = append(args, r.WorkerType, prev.Seq, prev.Claim, string(prev.Kind), prev.InstanceID)
	case k.statementLog || k.galera:
		args = args[:3]
	}
	err := l.insertChecked(ctx, c, text, args, r, document)
	if errors.Is(err, errNothing) || prev != nil && k.galera && codeOf(err) == codeDeadlock {
		if err = l.why(ctx, c, r, prev); err == nil {
			err = l.insertChecked(ctx, c, text, args, r, document)
		}
	}
	switch {
	case errors.Is(err, errNothing):
		return storekit.NotStored(errors.New("the server finds the record below at one moment, and not at another"))
	case isKey(err, l.address.Table):
		return l.core.Taken(ctx, c, err, l.filled(`SELECT 1 FROM LEDGER WHERE worker_type = ? AND seq = ? UNION ALL SELECT NULL FROM DUAL WHERE ASTRAY`), r.WorkerType, r.Seq)
	}
	return err
}

// insertChecked inserts a row, and reads what became of it by a second statement: a trigger may change it without a word.
func (l *Ledger) insertChecked(ctx context.Context, c *sql.Conn, text string, args []any, r store.Record, document string) error {
	result, err := c.ExecContext(ctx, l.filled(text), args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 && len(args) > 3 {
		return errNothing
	}
	if err != nil || n != 1 {
		return errors.Join(fmt.Errorf("an insert affected %d rows", n), err)
	}
	var at int64
	var server string
	same := false
	err = sqldb.Each(ctx, c, func(rows *sql.Rows) error { return rows.Scan(&same, &at, &server) },
		l.filled(`SELECT document = CAST(? AS BINARY), CLOCK, SERVER FROM LEDGER WHERE worker_type = ? AND seq = ? UNION ALL SELECT NULL, NULL, NULL FROM DUAL WHERE ASTRAY`),
		document, r.WorkerType, r.Seq)
	if err != nil {
		return sqldb.Afterwards(err)
	}
	l.core.Tell(ctx, at, server)
	if !same {
		return l.changed(ctx, c)
	}
	return nil
}

// why is the reason for which nothing was inserted, or nil if the insert is to be repeated: inserts don't wait until a node of a
// cluster has what others have committed, as reads do. Without prev it can only be that the key is taken.
func (l *Ledger) why(ctx context.Context, c *sql.Conn, r store.Record, prev *store.Record) error {
	if prev == nil {
		return store.ErrConflict
	}
	err := store.WentBack(*prev)
	visit := func(rows *sql.Rows) error {
		var seq int64
		var same bool
		switch scanned := rows.Scan(&seq, &same); {
		case scanned != nil:
			return scanned
		case seq == r.Seq:
			err = store.ErrConflict
		case same && !errors.Is(err, store.ErrConflict):
			err = nil
		}
		return nil
	}
	asked := sqldb.Each(ctx, c, visit, l.filled(`SELECT seq, COALESCE(BELOW, 0) FROM LEDGER WHERE worker_type = ? AND seq IN (?, ?)
		UNION ALL SELECT NULL, NULL FROM DUAL WHERE ASTRAY`), prev.Claim, string(prev.Kind), prev.InstanceID, r.WorkerType, r.Seq, prev.Seq)
	if asked != nil {
		return storekit.NotStored(asked)
	}
	return err
}

// changed is the error of a record that was stored as another one.
func (l *Ledger) changed(ctx context.Context, c *sql.Conn) error {
	var flaws []storekit.Flaw
	err := c.Raw(func(own any) error {
		f, err := l.lookOn(ctx, own.(*conn))
		if err == nil {
			flaws = l.core.TableFlaws(f)
		}
		return err
	})
	if err == nil && len(flaws) > 0 {
		return flaws[0].Refuse()
	}
	return storekit.Flaw{
		Check: store.CheckConstraints, Remedy: "drop it",
		What: "table " + l.core.Name() + " has a trigger that changes records, which the user may not see",
	}.Refuse()
}
