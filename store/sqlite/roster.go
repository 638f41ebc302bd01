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

// rosterPiece is how many presences are read at once.
const rosterPiece = 100

// The statements on Roster. A batch is one of them, with the batch as JSON, so that appends wait for as
// little as possible. It names the key because what a foreign index takes for equal must not be replaced.
const (
	createRoster = `CREATE TABLE IF NOT EXISTS Roster (workerType TEXT NOT NULL, id TEXT NOT NULL, presence TEXT, PRIMARY KEY (workerType, id)) STRICT, WITHOUT ROWID`
	upsertRoster = `INSERT INTO Roster (workerType, id, presence) SELECT value ->> 'workerType', value ->> 'id', value FROM json_each(?1) WHERE true
		ON CONFLICT (workerType, id) DO UPDATE SET presence = excluded.presence`
	deleteRoster = `DELETE FROM Roster WHERE workerType = ?1 AND id IN (SELECT value FROM json_each(?2))`
	// Each text is below each blob. Like the limit of a ledger's statements, that of a piece is no parameter alone.
	selectRoster = `SELECT workerType, id, iif(octet_length(presence) <= ?4, presence, NULL) FROM Roster
		WHERE (workerType, id) > (?2, ?3) AND workerType <= iif(?1 = '', x'', ?1) ORDER BY workerType, id LIMIT ?5 + 0`
	findRoster = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND lower(name) = 'roster'`
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

// Presences lists the presences of a worker type, or of all. It reads them in pieces, between which appends have their turn.
func (l *Ledger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	return reads(ctx, l, "presences", cmp.Or(workerType, l.o.Path), func(ctx context.Context, f *file) (all []store.Presence, err error) {
		last := rosterRow{workerType: workerType}
		next := onRoster(func(ctx context.Context, conn *sql.Conn, there bool) (piece []rosterRow, err error) {
			if !there {
				return nil, nil
			}
			return rows(ctx, conn, scanPresence, selectRoster, workerType, last.workerType, last.id, maxPresence, rosterPiece)
		})
		for {
			piece, err := next(ctx, f)
			if err != nil {
				return nil, err
			}
			for _, row := range piece {
				if row.presence != nil {
					all = append(all, *row.presence)
				}
			}
			if len(piece) < rosterPiece {
				return all, nil
			}
			last = piece[len(piece)-1]
		}
	})
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

// rosterRow is a row of Roster: its key, and its presence unless that can't be decoded, is invalid, or contradicts the key.
type rosterRow struct {
	workerType, id string
	presence       *store.Presence
}

func scanPresence(r *sql.Rows) (row rosterRow, err error) {
	var text sql.NullString
	if err := r.Scan(&row.workerType, &row.id, &text); err != nil {
		return row, err
	}
	var p store.Presence
	if json.Unmarshal([]byte(text.String), &p) == nil && p.WorkerType == row.workerType && p.ID == row.id && p.Check() == nil {
		p = p.Truncated()
		row.presence = &p
	}
	return row, nil
}
