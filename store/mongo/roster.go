package mongo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Roster = (*Ledger)(nil)

const (
	// rosterSuffix follows the name of the ledger's collection in that of the roster's.
	rosterSuffix = "_roster"
	// attendBatch is how many presences one command stores. FerretDB 1 takes one of its 100 connections to
	// SQLite for each, and waits for ever if all are taken.
	attendBatch = 10
	// attendTries is how often a batch is sent in which two clients inserted one presence at a time.
	attendTries = 3
)

// roster is the collection of the presences. What the primary has is enough for them: a rollback loses
// what is soon written again.
func (l *Ledger) roster() *mongo.Collection {
	to := l.to()
	return to.db.Collection(to.coll.Name()+rosterSuffix, options.Collection().
		SetReadConcern(readconcern.Local()).SetWriteConcern(writeconcern.W1()))
}

// Attend stores presences in place of those with their keys, ten with each command. MongoDB creates the
// collection if it is missing.
func (l *Ledger) Attend(ctx context.Context, presences []store.Presence) error {
	updates := make([]bson.D, len(presences))
	for i, p := range presences {
		err := p.Check()
		var doc bson.Raw
		if err == nil {
			doc, err = encodePresence(p)
		}
		if err != nil {
			return l.runner.Invalid("attend", err)
		}
		updates[i] = bson.D{{Key: "q", Value: bson.D{{Key: fieldID, Value: storekit.PresenceKey(p.WorkerType, p.ID)}}}, {Key: "u", Value: doc}, {Key: "upsert", Value: true}}
	}
	for batch := range slices.Chunk(updates, attendBatch) {
		if err := l.onRoster(ctx, "attend", "", func(ctx context.Context) error { return l.upsert(ctx, batch) }); err != nil {
			return err
		}
	}
	if len(updates) == 0 {
		return l.open(ctx, "attend", "")
	}
	return nil
}

// upsert stores a batch. The driver doesn't repeat the command, which not all servers would take.
func (l *Ledger) upsert(ctx context.Context, batch []bson.D) (err error) {
	for range attendTries {
		err = l.to().db.RunCommand(ctx, bson.D{
			{Key: "update", Value: l.roster().Name()},
			{Key: "ordered", Value: false},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}},
			{Key: "updates", Value: batch},
		}, options.RunCmd().SetReadPreference(readpref.Primary())).Err()
		if !hasCode(err, codeDuplicate, codeDuplicateOnUpdate) {
			break
		}
	}
	if we, ok := errors.AsType[mongo.WriteException](err); ok && len(we.WriteErrors) > 1 {
		we.WriteErrors = we.WriteErrors[:1] // The others say the same.
		err = we
	}
	return err
}

// Leave removes presences, with one command.
func (l *Ledger) Leave(ctx context.Context, workerType string, ids []string) error {
	if err := store.CheckWorkerType(workerType); err != nil {
		return l.runner.Invalid("leave", err)
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = storekit.PresenceKey(workerType, id)
	}
	return l.onRoster(ctx, "leave", workerType, func(ctx context.Context) error {
		_, err := l.roster().DeleteMany(ctx, bson.D{{Key: fieldID, Value: bson.D{{Key: "$in", Value: keys}}}})
		return err
	})
}

// Presences lists the presences of a worker type, or of all, with one find. The server sends them in batches of 16 MB at most.
func (l *Ledger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	filter := bson.D{}
	if workerType != "" {
		if err := store.CheckWorkerType(workerType); err != nil {
			return nil, l.runner.Invalid("presences", err)
		}
		filter = bson.D{{Key: fieldID, Value: bson.D{{Key: "$gte", Value: workerType + ":"}, {Key: "$lt", Value: workerType + ";"}}}}
	}
	return run(ctx, l, "presences", workerType, func(ctx context.Context) (all []store.Presence, err error) {
		cursor, err := l.roster().Find(ctx, filter)
		if err != nil {
			return nil, err
		}
		defer func() { _ = cursor.Close(ctx) }()
		for cursor.Next(ctx) {
			if p, ok := decodePresence(cursor.Current); ok {
				all = append(all, p)
			}
		}
		if err := cursor.Err(); err != nil {
			return nil, err
		}
		slices.SortFunc(all, store.ComparePresences)
		return all, nil
	})
}

// onRoster performs an operation without a result, which needs no collection that is fit for a ledger.
func (l *Ledger) onRoster(ctx context.Context, op, key string, do func(ctx context.Context) error) error {
	_, err := run(ctx, l, op, key, func(ctx context.Context) (none struct{}, err error) { return none, do(ctx) })
	return err
}

// createRoster creates the collection, if we may. Without it, there are no presences in it.
func (l *Ledger) createRoster(ctx context.Context) error {
	err := tolerate(l.to().db.CreateCollection(ctx, l.roster().Name()))
	if err != nil && !hasCode(err, codeNamespaceExists) {
		return fmt.Errorf("create %s%s: %w", l.namespace(), rosterSuffix, err)
	}
	return nil
}
