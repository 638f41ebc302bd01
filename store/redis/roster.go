package redis

import (
	"context"
	"maps"
	"slices"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Roster = (*Ledger)(nil)

// Attend stores presences in place of those with their keys: one hash for each worker type, and the names of all types
// in a sorted set, sent at once.
func (l *Ledger) Attend(ctx context.Context, presences []store.Presence) error {
	rosters := map[string]command{}
	for _, p := range presences {
		err := p.Check()
		var text []byte
		if err == nil {
			text, err = storekit.EncodePresence(p)
		}
		if err != nil {
			return l.runner.Invalid("attend", err)
		}
		if rosters[p.WorkerType] == nil {
			rosters[p.WorkerType] = command{"HSET", l.names.roster(p.WorkerType)}
		}
		rosters[p.WorkerType] = append(rosters[p.WorkerType], p.ID, string(text))
	}
	var commands []command
	types := command{"ZADD", l.names.rosters()}
	for _, name := range slices.Sorted(maps.Keys(rosters)) {
		types = append(types, 0, name)
		commands = append(commands, rosters[name])
	}
	if len(commands) > 0 {
		commands = append([]command{types}, commands...)
	}
	return l.write(ctx, "attend", "", commands)
}

// Leave removes presences, by one command.
func (l *Ledger) Leave(ctx context.Context, workerType string, ids []string) error {
	if err := store.CheckWorkerType(workerType); err != nil {
		return l.runner.Invalid("leave", err)
	}
	remove := command{"HDEL", l.names.roster(workerType)}
	for _, id := range ids {
		if store.IsPresenceID(id) { // There can be no other.
			remove = append(remove, id)
		}
	}
	var commands []command
	if len(remove) > 2 {
		commands = []command{remove}
	}
	return l.write(ctx, "leave", workerType, commands)
}

// write sends commands of the roster at once. The first that fails is the error.
func (l *Ledger) write(ctx context.Context, op, key string, commands []command) error {
	_, err := storekit.Run(ctx, l.runner, op, key, func(ctx context.Context) (none struct{}, err error) {
		switch {
		case l.readOnly:
			return none, errReadOnly
		case len(commands) == 0:
			return none, nil
		}
		return none, l.on(ctx, func(k *link) (bool, error) {
			replies, err := k.ask(ctx, commands...)
			if err != nil {
				return false, err
			}
			for _, r := range replies {
				if err := r.Err(); err != nil {
					return true, err
				}
			}
			return true, nil
		})
	})
	return err
}

// Presences lists the presences of a worker type, or of all.
func (l *Ledger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	if workerType != "" {
		if err := store.CheckWorkerType(workerType); err != nil {
			return nil, l.runner.Invalid("presences", err)
		}
	}
	return storekit.Run(ctx, l.runner, "presences", workerType, func(ctx context.Context) (all []store.Presence, err error) {
		names := []string{workerType}
		if workerType == "" {
			if names, err = l.members(ctx, l.names.rosters()); err != nil {
				return nil, err
			}
		}
		for some := range slices.Chunk(names, atATime) {
			var asked []command
			for _, name := range some {
				asked = append(asked, command{"HGETALL", l.names.roster(name)})
			}
			replies, err := l.primaryAsk(ctx, asked...)
			if err != nil {
				return nil, err
			}
			for i, r := range replies {
				if r.err != nil {
					return nil, r.err
				}
				all = append(all, presences(some[i], r.value)...)
			}
		}
		slices.SortFunc(all, store.ComparePresences)
		return all, nil
	})
}

// presences are those of a hash. What isn't one is passed over.
func presences(workerType string, hash any) (all []store.Presence) {
	fields, _ := hash.([]any)
	for i := 0; i+1 < len(fields); i += 2 {
		id, _ := fields[i].(string)
		text, _ := fields[i+1].(string)
		if p, ok := storekit.DecodePresence([]byte(text)); ok && p.WorkerType == workerType && p.ID == id {
			all = append(all, p)
		}
	}
	return all
}
