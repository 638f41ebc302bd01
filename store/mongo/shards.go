package mongo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
)

// lookAtShardsAgain is how long a check of the shard key counts. A collection that is
// being resharded says so, with the new key, for at least 5 minutes before that key
// counts (reshardingMinimumOperationDurationMillis, 300,000 by default; SERVER-99970). So
// a change to a key that is unfit is seen before anybody can win under it.
const lookAtShardsAgain = 4 * time.Minute

// layout is how a collection is spread over the shards of a cluster.
type layout int

const (
	// whole collections are on one shard, or in no cluster.
	whole layout = iota
	// byID: sharded by _id. Any two documents with one _id meet on one shard.
	byID
	// byType: sharded by the worker type. The records of a type are in one chunk, so they
	// are on one shard, whose index keeps their _id unique.
	byType
	// unfit: sharded by anything else. Two documents with one _id may be on two shards.
	unfit
)

// layoutBy is the layout under a shard key.
func layoutBy(key bson.Raw) layout {
	fields, err := key.Elements()
	if err != nil || len(fields) != 1 {
		return unfit
	}
	switch fields[0].Key() {
	case fieldID:
		return byID
	case document.WorkerType:
		return byType
	}
	return unfit
}

// lookForShards finds out how the collection is sharded. A shard key under which _id
// isn't unique is refused, and so is a collection that may have one.
func (l *Ledger) lookForShards(ctx context.Context) (layout, error) {
	stats, err := l.to().db.RunCommand(ctx, bson.D{{Key: "collStats", Value: l.to().coll.Name()}}).Raw()
	if hasCode(err, codeNamespaceNotFound) {
		return whole, nil
	}
	if tolerate(err) != nil {
		return whole, err // It may pass, as without a primary.
	}
	sharded, known := stats.Lookup("sharded").BooleanOK()
	if known = known && err == nil; known && !sharded {
		return whole, nil
	}
	entry, err := l.configured(ctx)
	switch {
	case err == nil && (entry != nil || !known):
		return l.judge(entry)
	case tolerate(err) != nil:
		return whole, err
	case known:
		return unfit, storekit.Flaw{Check: CheckSharding, What: l.namespace() + " is sharded, and by which key can't be found out", Remedy: "grant find on config.collections"}.Refuse()
	}
	return unknown(whole, fmt.Sprintf("can't find out whether %s is sharded", l.namespace()), "grant the action collStats on it")
}

// configured is the collection's entry in the cluster's configuration, or nil.
func (l *Ledger) configured(ctx context.Context) (bson.Raw, error) {
	collections := l.to().client.Database("config").Collection("collections", options.Collection().
		SetReadConcern(readconcern.Majority()).SetReadPreference(readpref.Primary()))
	entry, err := first(ctx, collections, bson.D{{Key: fieldID, Value: l.namespace()}}, bson.D{})
	if err != nil {
		return nil, err
	}
	// There are entries of dropped collections, and of collections that are only known
	// there and not split.
	dropped, _ := entry.Lookup("dropped").BooleanOK()
	unsplit, _ := entry.Lookup("unsplittable").BooleanOK()
	if dropped || unsplit {
		return nil, nil
	}
	return entry, nil
}

// judge is the layout of a collection by its entry in the cluster's configuration, which
// is nil for one that isn't sharded.
func (l *Ledger) judge(entry bson.Raw) (layout, error) {
	if entry == nil {
		return whole, nil
	}
	key, _ := entry.Lookup("key").DocumentOK()
	now := layoutBy(key)
	if now == unfit {
		return unfit, l.unfitKey("is sharded by", key)
	}
	if next, ok := entry.Lookup("reshardingFields", "donorFields", "reshardingKey").DocumentOK(); ok && layoutBy(next) == unfit {
		return unfit, l.unfitKey("is being resharded by", next)
	}
	return now, nil
}

func (l *Ledger) unfitKey(is string, key bson.Raw) error {
	var fields []string
	elements, _ := key.Elements()
	for _, e := range elements {
		fields = append(fields, e.Key())
	}
	return storekit.Flaw{
		Check: CheckSharding, What: fmt.Sprintf("%s %s {%.80s}, and _id is unique only in each shard", l.namespace(), is, strings.Join(fields, ", ")),
		Remedy: fmt.Sprintf("reshard it by %s or by _id alone", document.WorkerType),
	}.Refuse()
}

// target adds the worker type to a filter, if that is the shard key: then one shard is
// asked, and not all of them. Elsewhere it is left out, since it would hide a document
// whose field contradicts its key.
func (l *Ledger) target(filter bson.D, workerType string) bson.D {
	if l.fitness.shape() == byType {
		filter = append(filter, bson.E{Key: document.WorkerType, Value: workerType})
	}
	return filter
}
