package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	code "modernc.org/sqlite/lib"

	"github.com/slotlease/slotlease/store"
)

// linesIn returns all lines by boot id, except those with a time that no clock can show. Files of earlier
// versions have only the offset.
func linesIn(ctx context.Context, db rowser) (lines map[string]line, err error) {
	r, err := db.QueryContext(ctx, selectLines)
	if err != nil {
		return nil, rebuiltLines(ctx, db, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	names, err := r.Columns()
	if err != nil {
		return nil, err
	}
	lines = map[string]line{}
	for r.Next() {
		values, to := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			to[i] = &values[i]
		}
		if err := r.Scan(to...); err != nil {
			return nil, err
		}
		var of string
		n, foreign := line{madeAt: unknown}, false
		for i, v := range values {
			if names[i] == "id" {
				of = fmt.Sprint(v)
				continue
			}
			number, ok := v.(int64)
			if !ok && (v != nil || names[i] == "wallOffset") {
				return nil, rebuilt(fmt.Sprintf("column %s of Boot has the value %.40q, want an integer", names[i], fmt.Sprint(v)))
			}
			d, bounded := micros(number)
			switch {
			case v == nil:
			case names[i] == "wallOffset":
				n.offset, foreign = d, !bounded
			case names[i] == "madeAt" && bounded:
				n.madeAt = d
			}
		}
		if !foreign {
			lines[of] = n
		}
	}
	return lines, r.Err()
}

// rebuiltLines is the error of a statement on Boot. If the table is no longer a ledger's, that is why.
func rebuiltLines(ctx context.Context, db rowser, err error) error {
	if resultCode(err)&0xff != code.SQLITE_ERROR {
		return err
	}
	found, failed := rows(ctx, db, func(r *sql.Rows) (why sql.NullString, err error) { err = r.Scan(&why); return why, err }, "SELECT "+selectRebuilt)
	if failed != nil || !found[0].Valid {
		return err
	}
	return rebuilt(found[0].String)
}

// micros is a time in µs, if two of them can be added: those of any clock up to the year 2116 can.
func micros(n int64) (d time.Duration, bounded bool) {
	const most = math.MaxInt64 / 2 / int64(time.Microsecond)
	return time.Duration(n) * time.Microsecond, -most <= n && n <= most
}

// putLines stores all lines, in place of those that are there.
func putLines(ctx context.Context, tx *sql.Tx, lines map[string]line) error {
	var there bool
	if err := tx.QueryRowContext(ctx, selectMadeAt).Scan(&there); err != nil {
		return err
	}
	statements := []string{addMadeAt, "DELETE FROM Boot"}
	if there {
		statements = statements[1:]
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	for id, n := range lines {
		var madeAt any
		if n.madeAt >= 0 {
			madeAt = n.madeAt.Microseconds()
		}
		if _, err := tx.ExecContext(ctx, insertLine, id, n.offset.Microseconds(), madeAt); err != nil {
			return err
		}
	}
	return nil
}

// newestRead is when the newest of all worker types' heads was read, by its worker, up to a time.
func newestRead(ctx context.Context, db rowser, until time.Time) (time.Time, error) {
	found, err := rows(ctx, db, func(r *sql.Rows) (at sql.NullInt64, err error) { err = r.Scan(&at); return at, err },
		selectNewestRead, int64(store.MaxSeq), until.UnixMilli())
	if err != nil || !found[0].Valid {
		return time.Time{}, err
	}
	return store.FromMillis(found[0].Int64), nil
}
