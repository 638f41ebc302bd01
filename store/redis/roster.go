package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.PartialRoster = (*Ledger)(nil)

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
		for i, r := range replies {
			if err == nil {
				err = r.Err()
			}
			if isCode(r.Err(), "WRONGTYPE") {
				return none, spoiled(fmt.Sprint(commands[i][1])) // No lease depends on it, and another prefix would be another ledger.
			}
		}
		return none, err
	})
	return err
}

// rostersAtATime is how many are read at once; fewer, if their reply is larger than it may be.
const rostersAtATime = 20

// Presences lists the presences of a worker type, or of all. A roster that another program has spoiled is an error with its key. In a
// list of all, it is left out instead, and Unlisted and Warning name it: it hides no other.
func (l *Ledger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	if workerType != "" {
		if err := store.CheckWorkerType(workerType); err != nil {
			return nil, l.runner.Invalid("presences", err)
		}
	}
	return storekit.Run(ctx, l.runner, "presences", workerType, func(ctx context.Context) (all []store.Presence, err error) {
		names := []string{workerType}
		if workerType == "" {
			names, err = l.members(ctx, l.names.rosters())
			switch {
			case errors.Is(err, errTooMuch):
				err = unreadable{err.Error(), store.ErrRefused}
			case isCode(err, "WRONGTYPE"):
				err = spoiled(l.names.rosters())
			}
			if err != nil {
				return nil, err
			}
			names = slices.DeleteFunc(names, func(name string) bool { return store.CheckWorkerType(name) != nil })
		}
		all, left, err := l.present(ctx, names)
		switch {
		case err != nil:
			return nil, err
		case workerType == "":
			l.leftOut.Store(&left)
		case len(left) > 0:
			return nil, left[0]
		}
		slices.SortFunc(all, store.ComparePresences)
		return all, nil
	})
}

// unreadable is the error of a roster that can't be read although others can. It names the key, and says what to do.
type unreadable struct {
	text string
	is   error
}

func (e unreadable) Error() string { return e.text }
func (e unreadable) Unwrap() error { return e.is }

// Unlisted is which rosters the newest list of all presences lacks; nil if none.
func (l *Ledger) Unlisted() error {
	left := l.leftOut.Load()
	switch {
	case left == nil || len(*left) == 0:
		return nil
	case len(*left) == 1:
		return fmt.Errorf("workers can't be listed: %w", (*left)[0])
	}
	return fmt.Errorf("the workers of %d types can't be listed; the first: %w", len(*left), (*left)[0])
}

// present reads the rosters of worker types, and says which can't be read.
func (l *Ledger) present(ctx context.Context, names []string) (all []store.Presence, left []unreadable, err error) {
	for most := rostersAtATime; len(names) > 0; most = min(most+1, rostersAtATime) {
		some := names[:min(most, len(names))]
		var asked []command
		for _, name := range some {
			asked = append(asked, command{"HGETALL", l.names.roster(name)})
		}
		replies, _, err := l.exchange(ctx, asked...)
		tooMuch := errors.Is(err, errTooMuch)
		switch {
		case tooMuch && len(some) > 1:
			most = len(some)/2 - 1
			continue
		case err != nil && !tooMuch:
			return nil, nil, err
		}
		names = names[len(some):]
		for i, name := range some {
			var found []store.Presence
			if tooMuch {
				found, err = l.inParts(ctx, name)
			} else {
				found, err = l.inOne(name, replies[i])
			}
			if bad, is := errors.AsType[unreadable](err); is {
				left = append(left, bad)
			} else if err != nil {
				return nil, nil, err
			}
			all = append(all, found...)
		}
	}
	return all, left, nil
}

// inOne reads the roster of a worker type from one reply.
func (l *Ledger) inOne(workerType string, reply *goredis.Cmd) ([]store.Presence, error) {
	fields, err := reply.StringSlice()
	if isCode(err, "WRONGTYPE") {
		err = spoiled(l.names.roster(workerType))
	}
	return presencesIn(workerType, fields), err
}

// spoiled is the error of a key of the roster that has another type.
func spoiled(key string) error {
	return unreadable{key + " has another type: another program wrote it. Remove it with DEL " + key + "; workers enter themselves again within 5 min, and until then lists lack them", store.ErrRefused}
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

// inParts reads a roster that is larger than a reply may be: another program has written there. What is too large for a presence isn't
// read, and of the rest no more is kept than the presences.
func (l *Ledger) inParts(ctx context.Context, workerType string) (all []store.Presence, err error) {
	key := l.names.roster(workerType)
	defer func() {
		text := fmt.Sprintf("%s: %v by DEL %[1]s, after which workers enter themselves again within 5 min", key, errTooMuch)
		switch {
		case isCode(err, "NOPERM"):
			err = unreadable{text + "; or grant +hkeys +hstrlen +hmget, with which it is read in parts", store.ErrRefused}
		case errors.Is(err, errTooMuch):
			err = unreadable{text, store.ErrRefused}
		case isCode(err, "WRONGTYPE"):
			err = spoiled(key)
		}
	}()
	ids, err := l.idsIn(ctx, key)
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(ids, fieldsAtATime) {
		fields, err := l.smallFields(ctx, key, some)
		if err != nil {
			return nil, err
		}
		all = append(all, presencesIn(workerType, fields)...)
	}
	return all, nil
}

// mostIDs is how many fields of a roster that is larger than a reply are read one by one: no worker type has so many workers.
const mostIDs = 100_000

// idsIn are the fields of a roster that may be those of presences.
func (l *Ledger) idsIn(ctx context.Context, key string) ([]string, error) {
	replies, _, err := l.exchange(ctx, command{"HKEYS", key})
	if err != nil {
		return nil, err
	}
	ids, err := replies[0].StringSlice()
	if len(ids) > mostIDs {
		return nil, errTooMuch
	}
	return slices.DeleteFunc(ids, func(id string) bool { return !store.IsPresenceID(id) }), err
}

// smallFields are those of some fields, with their values, that aren't too large for a presence.
func (l *Ledger) smallFields(ctx context.Context, key string, some []string) (fields []string, err error) {
	var lengths []command
	for _, id := range some {
		lengths = append(lengths, command{"HSTRLEN", key, id})
	}
	replies, _, err := l.exchange(ctx, lengths...)
	if err != nil {
		return nil, err
	}
	values := command{"HMGET", key}
	for i, r := range replies {
		n, err := r.Int64()
		if err != nil {
			return nil, err
		}
		if n <= storekit.MaxPresence {
			values = append(values, some[i])
		}
	}
	if len(values) == 2 {
		return nil, nil
	}
	if replies, _, err = l.exchange(ctx, values); err != nil {
		return nil, err
	}
	got, err := replies[0].Slice()
	for i, value := range got {
		if text, is := value.(string); is { // else it has left meanwhile
			fields = append(fields, fmt.Sprint(values[i+2]), text)
		}
	}
	return fields, err
}
