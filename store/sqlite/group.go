package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"

	code "modernc.org/sqlite/lib"
)

var (
	// errGuarded: the tables or store time are no longer what they were, so nothing was stored.
	errGuarded = errors.New("the tables or store time were changed")
	// errApart: the transaction of a group failed before its commit. Nothing was stored.
	errApart = errors.New("the group failed")
)

// commit stores a group, with what has gathered when the transaction begins. It returns those that
// are to be repeated and, if they must wait for a lock, why.
func (l *Ledger) commit(ctx context.Context, group []*entry) (again []*entry, why error) {
	for {
		f, err := l.use(ctx)
		if err != nil {
			return l.judge(group, err)
		}
		conn, err := f.db.Conn(ctx)
		if err != nil {
			return l.judge(group, err)
		}
		group = l.present(l.appends.more(l.present(group)))
		if len(group) == 0 {
			_ = conn.Close()
			return nil, nil
		}
		schema := f.schema.Load()
		outcomes, err := l.transact(ctx, conn, group, schema)
		_ = conn.Close()
		switch {
		case errors.Is(err, errGuarded):
			if err := l.kept(ctx, f, schema); err != nil {
				return l.judge(group, err)
			}
			continue
		case errors.Is(err, errApart):
			for _, e := range group {
				e.alone = true
			}
			return group, nil
		case err != nil:
			return l.judge(group, f.blamed(ctx, err))
		}
		// What lies in a log that others don't use isn't stored, and a conflict may be with that.
		if err := f.check(); err != nil {
			l.answer(l.found(err), group...)
			return nil, nil
		}
		if freed(group, outcomes) {
			hint(f.files)
		}
		for i, e := range group {
			l.answer(outcomes[i], e)
		}
		return nil, nil
	}
}

// freed reports whether a group stored a record that others may be waiting for.
func freed(group []*entry, outcomes []error) bool {
	for i, e := range group {
		if e.frees && outcomes[i] == nil {
			return true
		}
	}
	return false
}

// judge gives a group the error that it shares, unless it is to be repeated.
func (l *Ledger) judge(group []*entry, err error) (again []*entry, why error) {
	if isBusy(err) {
		return l.present(group), err
	}
	l.answer(err, group...)
	return nil, nil
}

// transact inserts the records of a group in one transaction, and syncs them to the disk. Each has its
// own outcome: nil, or that its key is taken. An error is that of all.
func (l *Ledger) transact(ctx context.Context, conn *sql.Conn, group []*entry, schema int64) (outcomes []error, err error) {
	if len(group) == 1 {
		r, err := conn.ExecContext(ctx, insertRecord, slices.Concat(group[0].values, l.guards(schema))...)
		if err != nil {
			return nil, err
		}
		return []error{nil}, inserted(r, errGuarded)
	}
	if _, err := conn.ExecContext(ctx, beginGroup); err != nil {
		if isBusy(err) {
			return nil, err
		}
		return nil, errApart
	}
	outcomes, err = l.insert(ctx, conn, group, schema)
	if err == nil {
		if _, err = conn.ExecContext(ctx, commitGroup); err == nil {
			return outcomes, nil
		}
	}
	if _, failed := conn.ExecContext(ctx, rollbackGroup); failed != nil {
		// Closing the connection undoes what is left of the transaction.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return nil, err
}

// insert inserts the records of a group in a transaction that has begun. One whose key is taken, or that follows no record,
// leaves the transaction as it was. Other errors don't, or nothing is known of them.
func (l *Ledger) insert(ctx context.Context, conn *sql.Conn, group []*entry, schema int64) (outcomes []error, err error) {
	var same bool
	if err := conn.QueryRowContext(ctx, selectGuards, l.guards(schema)...).Scan(&same); err != nil {
		return nil, errApart
	}
	if !same {
		return nil, errGuarded
	}
	outcomes = make([]error, len(group))
	for i, e := range group {
		r, err := conn.ExecContext(ctx, insertGuarded, e.values...)
		switch {
		case resultCode(err) == code.SQLITE_CONSTRAINT_PRIMARYKEY, isBelow(err):
			outcomes[i] = err
		case err != nil:
			return nil, errApart
		default:
			if err := inserted(r, errApart); err != nil {
				return nil, err
			}
		}
	}
	return outcomes, nil
}

// inserted returns the other error if a statement inserted nothing.
func inserted(r sql.Result, otherwise error) error {
	n, err := r.RowsAffected()
	if err == nil && n != 1 {
		err = otherwise
	}
	return err
}
