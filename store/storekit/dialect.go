package storekit

import (
	"context"
	"database/sql"
)

// MaxDocument is the size of the largest document that a store must read, in bytes. A record that passes its Check has
// less than 100 KiB, but another version or program may add to it, and then its lease is in force all the same. A
// statement may give NULL in place of a larger document, and the record has a Defect.
const MaxDocument = 8 << 20

// Dialect are the statements of a database. Their arguments are given below in order; a Statement may use them in
// another. Worker types are compared byte by byte, whatever the database's collation.
//
// Columns: now is the server's clock as it is when the statement runs (not when its transaction began), in whole
// microseconds since 1970 UTC. A seq is in 1 … store.MaxSeq, unless another program has written it.
type Dialect struct {
	// Create makes the tables, one statement each, and does nothing if they exist.
	Create []string
	// Insert (workerType, seq, document) stores a row unless its key exists. Then it affects none, or fails with an
	// error that means store.ErrConflict. Nothing but the key may have that effect.
	Insert Statement
	// Get (workerType, seq) gives the document.
	Get Statement
	// Tail (workerType, limit) gives now, seq, document: the newest rows with a seq in 1 … store.MaxSeq, and at least
	// one of those above, if there are any. Without rows to give it gives one with now, and NULL for the others.
	Tail Statement
	// Page (workerType, after, limit) gives seq, document: the oldest rows with a seq above after, up to store.MaxSeq,
	// oldest first.
	Page Statement
	// Trim (workerType, before, most) deletes the oldest rows with a seq below before, at most most of them, and never
	// the newest in 1 … store.MaxSeq.
	Trim Statement
	// WorkerTypes gives the worker types that have rows.
	WorkerTypes Statement
	// Now gives now.
	Now Statement
	// Named says that Tail and Now give one more text after each now: the process whose clock it is, by a name that
	// no other process ever has. It becomes the Server and the Clock of stamps.
	Named bool

	// Attend (workerType, id, document) stores a presence in place of the one with its key.
	Attend Statement
	// Leave (workerType, id) removes a presence.
	Leave Statement
	// Presences (workerType) gives workerType, id, document of the presences of a worker type, or of all if it is
	// empty.
	Presences Statement
}

// Statement is one statement with its placeholders.
type Statement struct {
	Text string
	// Args says which argument, from 0, each placeholder stands for. nil: each for one, in order.
	Args []int
}

// pick puts arguments in the order of the placeholders.
func (s Statement) pick(args []any) []any {
	if s.Args == nil {
		return args
	}
	picked := make([]any, len(s.Args))
	for i, n := range s.Args {
		picked[i] = args[n]
	}
	return picked
}

// exec returns the number of rows that were affected.
func (s Statement) exec(ctx context.Context, db *sql.DB, args ...any) (int64, error) {
	result, err := db.ExecContext(ctx, s.Text, s.pick(args)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row reads one row, and the rest of the answer: some drivers interrupt a statement whose rows are left unread, and an
// error may come after a row.
func (s Statement) row(ctx context.Context, db *sql.DB, into []any, args ...any) error {
	found := false
	err := s.rows(ctx, db, func(rows *sql.Rows) error {
		if found {
			return nil
		}
		found = true
		return rows.Scan(into...)
	}, args...)
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	return err
}

// rows visits all rows.
func (s Statement) rows(ctx context.Context, db *sql.DB, visit func(rows *sql.Rows) error, args ...any) error {
	rows, err := db.QueryContext(ctx, s.Text, s.pick(args)...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := visit(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
