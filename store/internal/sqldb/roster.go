package sqldb

import (
	"context"
	"database/sql"
	"slices"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Attend stores presences in place of those with their keys, one statement each.
func (l *Ledger[F]) Attend(ctx context.Context, presences []store.Presence) error {
	if err := l.mayWrite("attend"); err != nil {
		return err
	}
	texts, err := storekit.EncodePresences(presences)
	if err != nil {
		return l.c.Runner.Invalid("attend", err)
	}
	_, err = storekit.Run(ctx, l.c.Runner, "attend", "", func(ctx context.Context) (none struct{}, err error) {
		for i, p := range presences {
			if _, err := l.c.parts.Dialect.Attend.exec(ctx, l.c.DB, p.WorkerType, p.ID, string(texts[i])); err != nil {
				return none, err
			}
		}
		return none, nil
	})
	return err
}

// Leave removes presences, one statement each.
func (l *Ledger[F]) Leave(ctx context.Context, workerType string, ids []string) error {
	if err := l.mayWrite("leave"); err != nil {
		return err
	}
	if err := store.CheckWorkerType(workerType); err != nil {
		return l.c.Runner.Invalid("leave", err)
	}
	_, err := storekit.Run(ctx, l.c.Runner, "leave", workerType, func(ctx context.Context) (none struct{}, err error) {
		for _, id := range ids {
			if !store.IsPresenceID(id) {
				continue // There can be none.
			}
			if _, err := l.c.parts.Dialect.Leave.exec(ctx, l.c.DB, workerType, id); err != nil {
				return none, err
			}
		}
		return none, nil
	})
	return err
}

// Presences lists the presences of a worker type, or of all.
func (l *Ledger[F]) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	if workerType != "" {
		if err := store.CheckWorkerType(workerType); err != nil {
			return nil, l.c.Runner.Invalid("presences", err)
		}
	}
	return storekit.Run(ctx, l.c.Runner, "presences", workerType, func(ctx context.Context) (all []store.Presence, err error) {
		err = l.c.parts.Dialect.Presences.rows(ctx, l.c.DB, func(rows *sql.Rows) error {
			var name, id string
			var text sql.NullString
			if err := rows.Scan(&name, &id, &text); err != nil {
				return err
			}
			if p, ok := storekit.DecodePresence([]byte(text.String)); ok && p.WorkerType == name && p.ID == id {
				all = append(all, p)
			}
			return nil
		}, workerType)
		slices.SortFunc(all, store.ComparePresences)
		return all, err
	})
}
