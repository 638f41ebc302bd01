package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/slotlease/slotlease/store"
)

var _ store.Roster = (*Ledger)(nil)

// place is the key of a presence.
type place struct{ workerType, id string }

// Attend stores presences in place of those with their keys.
func (l *Ledger) Attend(ctx context.Context, presences []store.Presence) error {
	for _, p := range presences {
		if err := p.Check(); err != nil {
			return fmt.Errorf("memory: attend: %w", err)
		}
	}
	if err := l.enter(ctx, "attend", ""); err != nil {
		return err
	}
	defer l.mu.Unlock()
	for _, p := range presences {
		l.roster[place{p.WorkerType, p.ID}] = kept(p)
	}
	return nil
}

// Leave removes presences.
func (l *Ledger) Leave(ctx context.Context, workerType string, ids []string) error {
	if err := l.enter(ctx, "leave", workerType); err != nil {
		return err
	}
	defer l.mu.Unlock()
	for _, id := range ids {
		delete(l.roster, place{workerType, id})
	}
	return nil
}

// Presences lists the presences of a worker type, or of all.
func (l *Ledger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	if err := l.enter(ctx, "presences", workerType); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	var out []store.Presence
	for at, p := range l.roster {
		if workerType == "" || workerType == at.workerType {
			out = append(out, kept(p))
		}
	}
	slices.SortFunc(out, store.ComparePresences)
	return out, nil
}

// kept is a presence that shares nothing with the one given.
func kept(p store.Presence) store.Presence {
	p = p.Truncated()
	p.Labels = maps.Clone(p.Labels)
	if p.Score != nil {
		p.Score = new(*p.Score)
	}
	return p
}
