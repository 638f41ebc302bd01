package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/store"
)

// quietFor is how long appends notify nobody after that failed.
const quietFor = 10 * time.Minute

// insertion is what the server says of an insert.
type insertion struct {
	stored int64
	// hooked says that triggers or rules may have changed or dropped the row.
	hooked bool
	micros int64
	server string
}

// insert appends a record. Who waits for a lease that it may free is notified by the same statement.
func (l *Ledger) insert(ctx context.Context, r store.Record, document string) error {
	frees := store.Frees(r.Kind) && l.clock.Now().UnixNano() >= l.quiet.Load()
	got, err := l.insertOnce(ctx, r, document, frees)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && frees && l.meaning(err).NotStored && isOfNotify(e) {
		l.quiet.Store(l.clock.Now().Add(quietFor).UnixNano())
		got, err = l.insertOnce(ctx, r, document, false)
	}
	if err != nil {
		return err
	}
	if got.hooked {
		// Rules and triggers make it doubtful whether the key was free, and what was stored.
		if err := l.settleHooked(ctx, r, got.stored); err != nil {
			return err
		}
	}
	stamp := store.Stamp{Time: time.UnixMicro(got.micros).UTC(), Granularity: time.Microsecond, Server: got.server, Clock: got.server}
	store.Tell(ctx, l.skewed(stamp))
	if got.stored == 0 {
		return store.ErrConflict
	}
	return nil
}

// insertOnce inserts a row unless its key exists.
func (l *Ledger) insertOnce(ctx context.Context, r store.Record, document string, notify bool) (got insertion, err error) {
	args := []any{r.WorkerType, r.Seq, document}
	if notify {
		args = append(args, l.channel())
	}
	err = each(ctx, l.db, func(rows *sql.Rows) error {
		return rows.Scan(&got.stored, &got.hooked, &got.micros, &got.server)
	}, l.insertion(notify), args...)
	if err == nil && got.server == "" {
		err = errors.New("the server doesn't say what an insert did")
	}
	return got, err
}

// insertion is the statement that inserts a row, and says what came of it.
func (l *Ledger) insertion(notify bool) string {
	source := "stored"
	if notify {
		source = "stored, pg_notify($4, stored.worker_type)"
	}
	return strings.NewReplacer(
		"LEDGER", quoted(l.address.schema, l.address.table), "DURABLE", durable, "CLOCK", clockNow, "SERVER", serverName, "SOURCE", source,
		"SCHEMA", l.address.schema, "TABLE", l.address.table,
	).Replace(`WITH stored AS (INSERT INTO LEDGER (worker_type, seq, document) SELECT $1, $2, $3::json WHERE DURABLE
		ON CONFLICT (worker_type, seq) DO NOTHING RETURNING worker_type)
		SELECT (SELECT count(*) FROM SOURCE), coalesce((SELECT c.relhastriggers OR c.relhasrules FROM pg_class c, pg_namespace n
		WHERE n.oid = c.relnamespace AND n.nspname = 'SCHEMA' AND c.relname = 'TABLE'), true), CLOCK, SERVER`)
}

// each visits the rows of a statement, and waits for its end.
func each(ctx context.Context, db *sql.DB, visit func(rows *sql.Rows) error, text string, args ...any) error {
	rows, err := db.QueryContext(ctx, text, args...)
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

// settleHooked checks a table that may have triggers or rules, after an insert of some rows, and returns
// an error unless that is a plain success or a conflict. What the error is about comes after the insert, so that
// its outcome is unknown.
func (l *Ledger) settleHooked(ctx context.Context, r store.Record, stored int64) error {
	unsettled := func(err error) error {
		return fmt.Errorf("the insert was made (%d stored), and whether a trigger changes or drops records isn't known: %s", stored, err.Error())
	}
	f, err := l.look(ctx)
	if err != nil {
		return unsettled(err)
	}
	if flaws := l.tableFlaws(f.Ledger); len(flaws) > 0 {
		return flaws[0].Refuse()
	}
	if stored > 0 {
		return nil
	}
	found := false
	err = each(ctx, l.db, func(*sql.Rows) error { found = true; return nil },
		fmt.Sprintf(`SELECT 1 FROM %s WHERE worker_type = $1 AND seq = $2`, quoted(l.address.schema, l.address.table)), r.WorkerType, r.Seq)
	switch {
	case err != nil:
		return unsettled(err)
	case !found:
		return errors.New("no row was inserted, and its key is free")
	}
	return nil
}

// channel is the channel of notifications about the ledger.
func (l *Ledger) channel() string {
	sum := sha256.Sum256([]byte(l.address.schema + "." + l.address.table))
	return fmt.Sprintf("slotlease_%x", sum[:8])
}

// isOfNotify reports whether an error is about notifications: the queue is full, because somebody listens and
// takes none, or the function may not be used.
func isOfNotify(e *pgconn.PgError) bool {
	return e.Code == codeTooBig || e.Code == codeDenied && strings.Contains(e.Message, "pg_notify")
}
