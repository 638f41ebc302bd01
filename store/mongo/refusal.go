package mongo

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
)

// insert adds a document by a command that the driver doesn't repeat. So a reply is that to the only insert that was sent. It
// also works where retryable writes are refused, as by Amazon DocumentDB before 8.0.2 and Cosmos DB for MongoDB (RU).
//
// A client of the caller's own repeats what a server says that it didn't run because it is overloaded, unless its
// MaxAdaptiveRetries is 0.
func (l *Ledger) insert(ctx context.Context, doc bson.D) error {
	return l.to().db.RunCommand(ctx, bson.D{
		{Key: "insert", Value: l.to().coll.Name()},
		{Key: "ordered", Value: true},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "j", Value: true}}},
		{Key: "documents", Value: bson.A{doc}},
	}, options.RunCmd().SetReadPreference(readpref.Primary())).Err()
}

// certain adds store.ErrNotStored to the error of an append that surely stored nothing: the login was denied before it was
// sent, or the server refused it for lack of a right, or for what the collection is. A server checks rights before it runs a
// command:
// https://github.com/mongodb/mongo/blob/master/src/mongo/db/auth/README.md
//
// With a write-concern error beside it, a refusal is no proof: it says that something wasn't confirmed.
func certain(err error) error {
	if (errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrRefused)) && !unsure(err) {
		return storekit.NotStored(err)
	}
	return err
}

// unsure reports a reply that has a write-concern error.
func unsure(err error) bool {
	we, ok := errors.AsType[mongo.WriteException](err)
	return ok && we.WriteConcernError != nil
}

// foreign looks for a document of another worker type at a key that was taken, where reads ask for the records of one
// worker type: they don't show it, and workers would try that key for ever. Only a foreign program can have written it.
func (l *Ledger) foreign(ctx context.Context, r store.Record, err error) error {
	if err == nil || l.fitness.shape() != byType || !errors.Is(meaning(err), store.ErrConflict) || unsure(err) {
		return err
	}
	key, fields := bson.E{Key: fieldID, Value: store.Key(r.WorkerType, r.Seq)}, bson.D{{Key: document.WorkerType, Value: 1}}
	// A lost race, which the shard of the worker type shows alone. The others may be without a primary.
	if ours, failed := first(ctx, l.to().coll, l.target(bson.D{key}, r.WorkerType), fields); failed != nil || ours != nil {
		return err
	}
	// All shards are asked. Another than that of the worker type may have the key, too.
	cursor, failed := l.to().coll.Find(ctx, bson.D{key}, options.Find().SetProjection(fields))
	if failed != nil {
		return err
	}
	var found []bson.Raw
	if cursor.All(ctx, &found) != nil || len(found) == 0 {
		return err
	}
	var other string
	for _, raw := range found {
		if other, _ = raw.Lookup(document.WorkerType).StringValueOK(); other == r.WorkerType {
			return err
		}
	}
	return fmt.Errorf("%w: a document whose %s is %.80q has this key: remove it", store.ErrRefused, document.WorkerType, other)
}
