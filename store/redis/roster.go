package redis

import (
	"context"
	"errors"
	"fmt"
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
	if len(rosters) == 0 {
		return l.write(ctx, "attend", "")
	}
	commands, types := []command{nil}, command{"ZADD", l.names.rosters()}
	for _, name := range slices.Sorted(maps.Keys(rosters)) {
		types = append(types, 0, name)
		commands = append(commands, rosters[name])
	}
	commands[0] = types
	return l.write(ctx, "attend", "", commands...)
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
	if len(remove) == 2 {
		return l.write(ctx, "leave", workerType)
	}
	return l.write(ctx, "leave", workerType, remove)
}

// write sends commands of the roster at once. The first that fails is the error.
func (l *Ledger) write(ctx context.Context, op, key string, commands ...command) error {
	_, err := storekit.Run(ctx, l.runner, op, key, func(ctx context.Context) (none struct{}, err error) {
		switch {
		case l.readOnly:
			return none, errReadOnly
		case len(commands) == 0:
			return none, nil
		}
		replies, _, err := l.exchange(ctx, commands...)
		for _, r := range replies {
			if err == nil {
				err = r.Err()
			}
		}
		return none, err
	})
	return err
}

// rostersAtATime is how many are read at once; fewer, if their reply is larger than it may be.
const rostersAtATime = 20

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
		for most := rostersAtATime; len(names) > 0; most = min(most+1, rostersAtATime) {
			some := names[:min(most, len(names))]
			var asked []command
			for _, name := range some {
				asked = append(asked, command{"HGETALL", l.names.roster(name)})
			}
			replies, _, err := l.exchange(ctx, asked...)
			switch {
			case errors.Is(err, errTooMuch) && len(some) > 1:
				most = len(some)/2 - 1
				continue
			case errors.Is(err, errTooMuch):
				fields, err := l.smallFields(ctx, some[0])
				if err != nil {
					return nil, fmt.Errorf("%s: %w", l.names.roster(some[0]), err)
				}
				all = append(all, presencesIn(some[0], fields)...)
			case err != nil:
				return nil, err
			}
			names = names[len(some):]
			for i, r := range replies {
				fields, err := r.StringSlice()
				if err != nil {
					return nil, err
				}
				all = append(all, presencesIn(some[i], fields)...)
			}
		}
		slices.SortFunc(all, store.ComparePresences)
		return all, nil
	})
}

// presencesIn are the presences of a worker type in fields and their values.
func presencesIn(workerType string, fields []string) (all []store.Presence) {
	for ; len(fields) > 1; fields = fields[2:] {
		if p, ok := storekit.DecodePresence([]byte(fields[1])); ok && p.WorkerType == workerType && p.ID == fields[0] {
			all = append(all, p)
		}
	}
	return all
}

// fieldsAtATime are so few that a reply holds them, each as large as a presence may be.
const fieldsAtATime = mostReply / storekit.MaxPresence / 2

// smallFields are the fields, and their values, of a roster that is larger than a reply may be, without those that are too large for a
// presence: another program has made them.
func (l *Ledger) smallFields(ctx context.Context, workerType string) (fields []string, err error) {
	key := l.names.roster(workerType)
	replies, _, err := l.exchange(ctx, command{"HKEYS", key})
	if err != nil {
		return nil, err
	}
	ids, err := replies[0].StringSlice()
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(slices.DeleteFunc(ids, func(id string) bool { return !store.IsPresenceID(id) }), fieldsAtATime) {
		var lengths []command
		for _, id := range some {
			lengths = append(lengths, command{"HSTRLEN", key, id})
		}
		if replies, _, err = l.exchange(ctx, lengths...); err != nil {
			return nil, err
		}
		values := command{"HMGET", key}
		for i, r := range replies {
			if n, err := r.Int64(); err != nil {
				return nil, err
			} else if n <= storekit.MaxPresence {
				values = append(values, some[i])
			}
		}
		if len(values) == 2 {
			continue
		}
		if replies, _, err = l.exchange(ctx, values); err != nil {
			return nil, err
		}
		got, err := replies[0].Slice()
		if err != nil {
			return nil, err
		}
		for i, value := range got {
			if text, is := value.(string); is { // else it has left meanwhile
				fields = append(fields, fmt.Sprint(values[i+2]), text)
			}
		}
	}
	return fields, nil
}
