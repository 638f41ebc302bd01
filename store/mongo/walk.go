package mongo

import (
	"cmp"
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
)

// listPage is how many ids are read at a time to find the worker types.
const listPage = 100

var idOnly = bson.D{{Key: fieldID, Value: 1}}

// walk reads the records of a query, and reports an unreachable id if it meets one.
//
// The ids of a worker type are those that begin with its name and a colon; names contain
// neither a colon nor a semicolon, the character after it. So neither a wrong field nor a
// missing index can hide a document.
func (l *Ledger) walk(ctx context.Context, q document.Query) (records []store.Record, unreachable string, err error) {
	all := document.IDs{From: q.WorkerType + ":", Below: q.WorkerType + ";"}
	return document.Walk(q, func(ids document.IDs, limit int, visit func(id string, raw []byte) bool) error {
		ids = cmp.Or(ids, all)
		return l.find(ctx, bson.D{{Key: "$gte", Value: ids.From}, {Key: "$lt", Value: ids.Below}}, q, limit, visit)
	}, decode)
}

// find visits the documents with an id in a range until visit returns false. The
// raw document is valid only during the visit.
func (l *Ledger) find(ctx context.Context, ids bson.D, q document.Query, limit int, visit func(id string, raw []byte) bool) error {
	fields, order := projection, 1
	if q.Keys {
		fields = idOnly
	}
	if q.NewestFirst {
		order = -1
	}
	o := options.Find().SetSort(bson.D{{Key: fieldID, Value: order}}).SetProjection(fields)
	if limit > 0 {
		o.SetLimit(int64(limit))
	}
	filter := bson.D{{Key: fieldID, Value: ids}}
	if q.WorkerType != "" {
		if filter = l.target(filter, q.WorkerType); len(filter) > 1 && l.fitness.behindRouter() {
			// The index of the shard key has no order of keys.
			o.SetHint(bson.D{{Key: fieldID, Value: 1}})
		}
	}
	cursor, err := l.to().coll.Find(ctx, filter, o)
	if err != nil {
		return err
	}
	// A cursor that was read to its end is closed already. If another can't be closed
	// now, the server drops it after a while.
	defer func() { _ = cursor.Close(ctx) }()
	for cursor.Next(ctx) {
		id, ok := cursor.Current.Lookup(fieldID).StringValueOK()
		if !ok {
			return fmt.Errorf("the server sent an _id of type %s for a range of strings", cursor.Current.Lookup(fieldID).Type)
		}
		if !visit(id, cursor.Current) {
			return nil
		}
	}
	return cursor.Err()
}

// first is the first document that a filter finds, or nil. It is no FindOne, with which the
// driver sends a deadline along as maxTimeMS.
func first(ctx context.Context, c *mongo.Collection, filter, fields bson.D) (bson.Raw, error) {
	cursor, err := c.Find(ctx, filter, options.Find().SetProjection(fields).SetLimit(-1)) // One, in a single batch.
	if err != nil {
		return nil, err
	}
	var found []bson.Raw
	if err := cursor.All(ctx, &found); err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// idsFrom are the first ids, of any worker type, that are not below a given one.
func (l *Ledger) idsFrom(ctx context.Context, from string) (ids []string, err error) {
	r := bson.D{{Key: "$gte", Value: from}}
	err = l.find(ctx, r, document.Query{Keys: true}, listPage, func(id string, _ []byte) bool {
		ids = append(ids, id)
		return true
	})
	return ids, err
}
