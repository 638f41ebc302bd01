package sqldb

import (
	"context"
	"database/sql"
)

// Dialect are the statements of a database. Their arguments are given below in order; a Statement may use them in
// another. Worker types are compared byte by byte, whatever the database's collation.
//
// Columns: now is the server's clock as it is when the statement runs (not when its transaction began), in whole
// microseconds since 1970 UTC, and server the process whose clock it is, by a name that no other process ever has. A seq is in
// 1 … store.MaxSeq, unless another program has written it. In place of a document of more than storekit.MaxDocument bytes a
// statement may give NULL: then the record has a Defect.
type Dialect struct {
	// Get (workerType, seq) gives the document.
	Get Statement
	// Tail (workerType, limit) gives now, server, seq, document: the newest rows with a seq in 1 … store.MaxSeq, and at least
	// one of those above, if there are any. Without rows to give it gives one with now and server, and NULL for the others.
	Tail Statement
	// Page (workerType, after, limit) gives seq, document: the oldest rows with a seq above after, up to store.MaxSeq,
	// oldest first.
	Page Statement
	// Trim (workerType, before, most) deletes the oldest rows with a seq below before, at most most of them, and never
	// the newest in 1 … store.MaxSeq.
	Trim Statement
	// WorkerTypes gives the worker types that have rows.
	WorkerTypes Statement
	// Now gives now and server.
	Now Statement
	// Attend (workerType, id, document) stores a presence in place of the one with its key.
	Attend Statement
	// Leave (workerType, id) removes a presence.
	Leave Statement
	// Presences (workerType) gives workerType, id, document of the presences of a worker type, or of all if it is
	// empty. In place of a document of more than storekit.MaxPresence bytes it gives NULL.
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
	return Each(ctx, db, visit, s.Text, s.pick(args)...)
}
