package mongo

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
)

const (
	newestFirst = -1
	oldestFirst = 1

	// listPage is how many ids are read at a time to find the worker types.
	listPage = 100
)

var idOnly = bson.D{{Key: fieldID, Value: 1}}

// walk says which documents of a worker type to read, in the order of their ids,
// which for keys is that of Seq.
type walk struct {
	workerType string
	// below bounds the Seq, if not 0.
	below int64
	order int
	limit int
	// keys asks for records that have only their key.
	keys bool
}

// ids is the range of _id that holds the worker type. Its ids are those that
// begin with its name and a colon; names contain neither a colon nor a
// semicolon, the character after it. So neither a wrong field nor a missing index
// can hide a document.
func (w walk) ids() bson.D {
	if w.below != 0 {
		return between(store.Key(w.workerType, 1), store.Key(w.workerType, w.below))
	}
	return between(w.workerType+":", w.workerType+";")
}

func between(from, below string) bson.D {
	return bson.D{{Key: "$gte", Value: from}, {Key: "$lt", Value: below}}
}

func (w walk) record(seq int64, raw []byte) store.Record {
	if w.keys {
		return store.Record{WorkerType: w.workerType, Seq: seq}
	}
	return decode(w.workerType, seq, raw)
}

// walk reads the records of a walk, and reports an unreachable id if it meets one.
func (l *Ledger) walk(ctx context.Context, w walk) (records []store.Record, unreachable string, err error) {
	return document.Walk(w.workerType, w.limit, func(betweenKeys bool, limit int, visit func(id string, raw []byte) bool) error {
		ids := w.ids()
		if betweenKeys && w.below == 0 {
			ids = between(store.Key(w.workerType, 1), store.Key(w.workerType, store.MaxSeq+1))
		}
		return l.find(ctx, ids, w, limit, visit)
	}, w.record)
}

// find visits the documents with an id in a range until visit returns false. The
// raw document is valid only during the visit.
func (l *Ledger) find(ctx context.Context, ids bson.D, w walk, limit int, visit func(id string, raw []byte) bool) error {
	fields := projection
	if w.keys {
		fields = idOnly
	}
	o := options.Find().SetSort(bson.D{{Key: fieldID, Value: w.order}}).SetProjection(fields)
	if limit > 0 {
		o.SetLimit(int64(limit))
	}
	cursor, err := l.coll.Find(ctx, bson.D{{Key: fieldID, Value: ids}}, o)
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

// idsFrom are the first ids, of any worker type, that are not below a given one.
func (l *Ledger) idsFrom(ctx context.Context, from string) (ids []string, err error) {
	r := bson.D{{Key: "$gte", Value: from}}
	err = l.find(ctx, r, walk{order: oldestFirst, keys: true}, listPage, func(id string, _ []byte) bool {
		ids = append(ids, id)
		return true
	})
	return ids, err
}
