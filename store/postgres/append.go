package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// insertion is what the server says of an insert.
type insertion struct {
	stored int64
	// hooked says that triggers or rules may have changed or dropped the row.
	hooked bool
	micros int64
	server string
	// back says that neither the key is there nor the record that was to be below.
	back bool
}

// insert appends a record; right above prev, unless that is nil. Who waits for a lease that it may free is notified by
// the same statement.
func (l *Ledger) insert(ctx context.Context, r store.Record, prev *store.Record, document string) error {
	frees := store.Frees(r.Kind)
	got, err := l.insertOnce(ctx, r, prev, document, frees)
	e, refused := errors.AsType[*pgconn.PgError](err)
	switch {
	case refused && frees && l.meaning(err).NotStored && isOfNotify(e):
		got, err = l.insertOnce(ctx, r, prev, document, false)
	case refused && prev != nil && e.Code == codeNoText:
		err = storekit.NotStored(fmt.Errorf("%w: the record below has a NUL", errors.ErrUnsupported))
	}
	if err != nil {
		return err
	}
	if got.hooked && !got.back {
		// Rules and triggers make it doubtful whether the key was free, and what was stored.
		if err := l.settleHooked(ctx, r, got.stored); err != nil {
			return err
		}
	}
	l.core.Tell(ctx, got.micros, got.server)
	switch {
	case got.stored > 0:
		return nil
	case got.back:
		return store.WentBack(*prev)
	}
	return store.ErrConflict
}

// insertOnce inserts a row unless its key exists.
func (l *Ledger) insertOnce(ctx context.Context, r store.Record, prev *store.Record, document string, notify bool) (got insertion, err error) {
	args := []any{r.WorkerType, r.Seq, document}
	if prev != nil {
		args = append(args, prev.Claim, string(prev.Kind), prev.InstanceID)
	}
	if notify {
		args = append(args, l.channel())
	}
	err = sqldb.Each(ctx, l.db, func(rows *sql.Rows) error {
		return rows.Scan(&got.stored, &got.hooked, &got.micros, &got.server, &got.back)
	}, l.inserts[[2]bool{prev != nil, notify}], args...)
	if err == nil && got.server == "" {
		err = errors.New("the server doesn't say what an insert did")
	}
	return got, err
}

// insertion is the statement that inserts a row, and says what came of it. The row below is looked at as of the moment the
// statement began: if it was there then, nothing but the key has kept the row out.
func (l *Ledger) insertion(after, notify bool) string {
	below, condition, back, channel := "", "", "false", "$4"
	if after {
		below = `below AS (SELECT 1 FROM LEDGER WHERE worker_type = $1 AND seq = ($2 - 1)
			AND document ->> 'claim' = $4 AND document ->> 'kind' = $5 AND document ->> 'instanceId' = $6), `
		condition = ` AND EXISTS (SELECT FROM below)`
		back = `NOT EXISTS (SELECT FROM below) AND NOT EXISTS (SELECT FROM LEDGER WHERE worker_type = $1 AND seq = $2)`
		channel = "$7"
	}
	source := "stored"
	if notify {
		source += ", pg_notify(" + channel + ", stored.worker_type)"
	}
	return catalogued(strings.NewReplacer(
		"LEDGER", quoted(l.address.Schema, l.address.Table), "DURABLE", durable, "CLOCK", clockNow, "SERVER", serverName,
	).Replace(`WITH ` + below + `stored AS (INSERT INTO LEDGER (worker_type, seq, document) SELECT $1::text, $2::bigint, $3::text::json WHERE DURABLE` + condition + `
		ON CONFLICT (worker_type, seq) DO NOTHING RETURNING worker_type)
		SELECT (SELECT count(*) FROM ` + source + `), coalesce((SELECT c.relhastriggers OR c.relhasrules OR c.relrowsecurity FROM pg_class c WHERE c.oid = 'LEDGER'::regclass), true), CLOCK, SERVER, ` + back))
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
	if flaws := l.core.TableFlaws(f); len(flaws) > 0 {
		return flaws[0].Refuse()
	}
	if stored > 0 {
		return nil
	}
	found := false
	err = sqldb.Each(ctx, l.db, func(*sql.Rows) error { found = true; return nil },
		catalogued(fmt.Sprintf(`SELECT 1 FROM %s WHERE worker_type = $1 AND seq = $2`, quoted(l.address.Schema, l.address.Table))), r.WorkerType, r.Seq)
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
	sum := sha256.Sum256([]byte(l.address.Schema + "." + l.address.Table))
	return fmt.Sprintf("slotlease_%x", sum[:8])
}

// isOfNotify reports whether an error is about notifications: the queue is full, because somebody listens and
// takes none, or the function may not be used.
func isOfNotify(e *pgconn.PgError) bool {
	return e.Code == codeTooBig || e.Code == codeDenied && strings.Contains(e.Message, "pg_notify")
}
