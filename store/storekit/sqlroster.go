package storekit

import (
	"context"
	"database/sql"
	"slices"

	"github.com/slotlease/slotlease/store"
)

// Attend stores presences in place of those with their keys, one statement each.
func (l *SQL) Attend(ctx context.Context, presences []store.Presence) error {
	if err := l.MayWrite("attend"); err != nil {
		return err
	}
	texts, err := EncodePresences(presences)
	if err != nil {
		return l.o.Runner.Invalid("attend", err)
	}
	_, err = Run(ctx, l.o.Runner, "attend", "", func(ctx context.Context) (none struct{}, err error) {
		for i, p := range presences {
			if _, err := l.o.Dialect.Attend.exec(ctx, l.o.DB, p.WorkerType, p.ID, string(texts[i])); err != nil {
				return none, err
			}
		}
		return none, nil
	})
	return err
}

// Leave removes presences, one statement each.
func (l *SQL) Leave(ctx context.Context, workerType string, ids []string) error {
	if err := l.MayWrite("leave"); err != nil {
		return err
	}
	if err := store.CheckWorkerType(workerType); err != nil {
		return l.o.Runner.Invalid("leave", err)
	}
	_, err := Run(ctx, l.o.Runner, "leave", workerType, func(ctx context.Context) (none struct{}, err error) {
		for _, id := range ids {
			if !store.IsPresenceID(id) {
				continue // There can be none.
			}
			if _, err := l.o.Dialect.Leave.exec(ctx, l.o.DB, workerType, id); err != nil {
				return none, err
			}
		}
		return none, nil
	})
	return err
}

// Presences lists the presences of a worker type, or of all.
func (l *SQL) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	if workerType != "" {
		if err := store.CheckWorkerType(workerType); err != nil {
			return nil, l.o.Runner.Invalid("presences", err)
		}
	}
	return Run(ctx, l.o.Runner, "presences", workerType, func(ctx context.Context) (all []store.Presence, err error) {
		err = l.o.Dialect.Presences.rows(ctx, l.o.DB, func(rows *sql.Rows) error {
			var name, id string
			var text sql.NullString
			if err := rows.Scan(&name, &id, &text); err != nil {
				return err
			}
			if p, ok := DecodePresence([]byte(text.String)); ok && p.WorkerType == name && p.ID == id {
				all = append(all, p)
			}
			return nil
		}, workerType)
		slices.SortFunc(all, store.ComparePresences)
		return all, err
	})
}
