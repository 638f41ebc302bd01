package mongo

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
)

// conflicts are the newest key of each worker type that was taken when we appended. The
// zero conflicts are ready for use.
type conflicts struct {
	mu  sync.Mutex
	key map[string]string
}

// repeated notes that a key was taken, and reports whether it was the last time, too.
func (c *conflicts) repeated(workerType, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.key == nil {
		c.key = map[string]string{}
	}
	again := c.key[workerType] == key
	c.key[workerType] = key
	return again
}

// foreign looks for a document of another worker type at a key that is taken again and
// again, where reads ask for the records of one worker type: they don't show it, and
// workers would try that key for ever. Only a foreign program can have written it.
func (l *Ledger) foreign(ctx context.Context, r store.Record, err error) error {
	if err == nil || l.fitness.shape() != byType || !errors.Is(meaning(err), store.ErrConflict) {
		return err
	}
	key := store.Key(r.WorkerType, r.Seq)
	if !l.conflicts.repeated(r.WorkerType, key) {
		return err
	}
	// All shards are asked. Another than that of the worker type may have the key, too.
	cursor, failed := l.to().coll.Find(ctx, bson.D{{Key: fieldID, Value: key}}, options.Find().SetProjection(bson.D{{Key: document.WorkerType, Value: 1}}))
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
	return keyKept{
		error: fmt.Errorf("%w: a document whose %s is %.80q has this key: remove it", store.ErrRefused, document.WorkerType, other),
		reply: err,
	}
}

// keyKept is the error of an append whose key belongs to a foreign document. Unwrap hides the reply,
// which would make the error a conflict.
type keyKept struct {
	error
	reply error // to the insert
}

func (e keyKept) Unwrap() error { return e.error }
