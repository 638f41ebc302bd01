package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/slotlease/slotlease/store"
)

var _ store.Roster = (*Ledger)(nil)

// maxPresence bounds the text of a presence that is read, in bytes. The largest that passes Check has less than
// 100 KiB, if JSON takes 6 bytes for each of its characters.
const maxPresence = 128 << 10

// The statements on Roster. A batch is one of them, with the batch as JSON, so that appends wait for as
// little as possible. It names the key because what a foreign index takes for equal must not be replaced.
const (
	createRoster = `CREATE TABLE IF NOT EXISTS Roster (workerType TEXT NOT NULL, id TEXT NOT NULL, presence TEXT, PRIMARY KEY (workerType, id)) STRICT, WITHOUT ROWID`
	upsertRoster = `INSERT INTO Roster (workerType, id, presence) SELECT value ->> 'workerType', value ->> 'id', value FROM json_each(?1) WHERE true
		ON CONFLICT (workerType, id) DO UPDATE SET presence = excluded.presence`
	deleteRoster = `DELETE FROM Roster WHERE workerType = ?1 AND id IN (SELECT value FROM json_each(?2))`
	selectRoster = `SELECT workerType, id, presence FROM Roster WHERE octet_length(presence) <= ?1`
	findRoster   = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND lower(name) = 'roster'`
)

// Attend stores presences in place of those with their keys, in one transaction. It adds the table if the file
// is that of an earlier version.
func (l *Ledger) Attend(ctx context.Context, presences []store.Presence) error {
	batch := make([]store.Presence, len(presences))
	for i, p := range presences {
		if err := p.Check(); err != nil {
			return fmt.Errorf("sqlite: attend: %w", err)
		}
		batch[i] = p.Truncated()
	}
	text, err := json.Marshal(batch)
	if err != nil {
		return fmt.Errorf("sqlite: attend: %w", err)
	}
	_, err = writes(ctx, l, "attend", l.o.Path, onRoster(func(ctx context.Context, conn *sql.Conn, there bool) (none struct{}, err error) {
		if !there {
			if _, err := conn.ExecContext(ctx, createRoster); err != nil {
				return none, err
			}
		}
		_, err = conn.ExecContext(ctx, upsertRoster, string(text))
		return none, err
	}))
	return err
}

// Leave removes presences, in one transaction.
func (l *Ledger) Leave(ctx context.Context, workerType string, ids []string) error {
	text, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("sqlite: leave: %w", err)
	}
	_, err = writes(ctx, l, "leave", workerType, onRoster(func(ctx context.Context, conn *sql.Conn, there bool) (none struct{}, err error) {
		if there {
			_, err = conn.ExecContext(ctx, deleteRoster, workerType, string(text))
		}
		return none, err
	}))
	return err
}

// Presences lists the presences of a worker type, or of all.
func (l *Ledger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	statement, args := selectRoster, []any{maxPresence}
	if workerType != "" {
		statement, args = statement+` AND workerType = ?2`, append(args, workerType)
	}
	return reads(ctx, l, "presences", cmp.Or(workerType, l.o.Path), onRoster(func(ctx context.Context, conn *sql.Conn, there bool) (all []store.Presence, err error) {
		if !there {
			return nil, nil
		}
		found, err := rows(ctx, conn, scanPresence, statement+` ORDER BY workerType, id`, args...)
		for _, p := range found {
			if p != nil {
				all = append(all, *p)
			}
		}
		return all, err
	}))
}

// onRoster is act on the connection of a file. It is told whether the table is there, because files of earlier
// versions have none. The end of a context doesn't interrupt it: that would close the connection, which appends
// use, too.
func onRoster[T any](act func(ctx context.Context, conn *sql.Conn, there bool) (T, error)) func(ctx context.Context, f *file) (T, error) {
	return func(ctx context.Context, f *file) (T, error) {
		return brief(ctx, f, func(ctx context.Context, conn *sql.Conn) (value T, err error) {
			var there bool
			if err := conn.QueryRowContext(ctx, findRoster).Scan(&there); err != nil {
				return value, err
			}
			return act(ctx, conn, there)
		})
	}
}

// scanPresence reads a row of Roster: nil if it can't be decoded, is invalid, or contradicts its key.
func scanPresence(r *sql.Rows) (*store.Presence, error) {
	var workerType, id, text string
	if err := r.Scan(&workerType, &id, &text); err != nil {
		return nil, err
	}
	var p store.Presence
	if json.Unmarshal([]byte(text), &p) != nil || p.WorkerType != workerType || p.ID != id || p.Check() != nil {
		return nil, nil //nolint:nilnil // It is passed over.
	}
	p = p.Truncated()
	return &p, nil
}
