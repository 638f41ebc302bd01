package mongo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// clockCollection needn't exist. What isn't sharded, or isn't there, is asked of the
// database's primary shard. So all workers of a sharded collection get one clock,
// wherever their records are.
const clockCollection = "slotlease.clock"

// reading is the clock of a shard's primary.
type reading struct {
	at   time.Time
	host string
}

// shardNow reads the clock of the shard that holds the collection or, if the collection
// is sharded, of the database's primary shard.
func (l *Ledger) shardNow(ctx context.Context) (store.Stamp, error) {
	if err := l.fit(ctx); err != nil {
		return store.Stamp{}, err
	}
	if l.fitness.shape() == whole {
		found, err := l.clocks(ctx, l.to().coll)
		if err != nil || len(found) < 2 {
			return l.shardStamp(found, l.namespace(), err)
		}
		// It was sharded since the last look.
		if _, err := l.inspect(ctx); err != nil {
			return store.Stamp{}, err
		}
		if l.fitness.shape() == whole {
			return l.shardStamp(found, l.namespace(), nil)
		}
	}
	found, err := l.clocks(ctx, l.to().db.Collection(clockCollection))
	return l.shardStamp(found, l.to().db.Name()+"."+clockCollection, err)
}

// shardStamp is the stamp by the one shard that answered for a collection.
func (l *Ledger) shardStamp(found []reading, namespace string, err error) (store.Stamp, error) {
	switch {
	case hasCode(err, codeNamespaceNotFound):
		return store.Stamp{}, fmt.Errorf("%w: no collection whose shard has a clock: %w", store.ErrMissing, err)
	case err != nil:
		return store.Stamp{}, err
	case len(found) == 0:
		return store.Stamp{}, fmt.Errorf("%w: no shard that has %s shows its clock: create the collection, and don't shard it", store.ErrMissing, namespace)
	case len(found) > 1:
		return store.Stamp{}, fmt.Errorf("%w: %s is on %d shards", store.ErrRefused, namespace, len(found))
	}
	s := l.stamp(found[0].at, found[0].host, true)
	s.Skew = l.fitness.last().spread.Skew(s.Skew)
	return s, nil
}

// clocks reads the clocks of the primaries of the shards that have a part of a collection, with
// $collStats, which requires read concern local. The replies contain no ledger data.
func (l *Ledger) clocks(ctx context.Context, c *mongo.Collection) ([]reading, error) {
	return l.clocksOf(ctx, c, readpref.Primary())
}

func (l *Ledger) clocksOf(ctx context.Context, c *mongo.Collection, which *readpref.ReadPref) ([]reading, error) {
	c = c.Clone(options.Collection().SetReadConcern(readconcern.Local()).SetReadPreference(which))
	cursor, err := c.Aggregate(ctx, mongo.Pipeline{{{Key: "$collStats", Value: bson.D{}}}})
	if err != nil {
		return nil, err
	}
	var replies []bson.Raw
	if err := cursor.All(ctx, &replies); err != nil {
		return nil, err
	}
	found := make([]reading, len(replies))
	for i, raw := range replies {
		ms, timed := raw.Lookup("localTime").DateTimeOK()
		host, named := raw.Lookup("host").StringValueOK()
		if !timed || !named {
			return nil, errors.New("the shard's $collStats has no localTime or no host")
		}
		found[i] = reading{store.FromMillis(ms), host}
	}
	return found, nil
}

// drift is how far two clocks may drift apart until they are compared again: each by 1000
// ppm, as package timeline assumes.
const drift = lookAtShardsAgain / 500

// spread is how far the clocks of shards are apart.
type spread struct {
	storekit.Distance

	failed bool // to compare them anew
}

// compareShards compares the clocks of all shards that have a part of the collection and
// of the primary shard. A shard without a primary is represented by a secondary, which may be
// elected. If a shard doesn't answer at all, mongos answers for none: then the last comparison
// goes on to count, if there is one, with more drift.
func (l *Ledger) compareShards(ctx context.Context) spread {
	began := l.fitness.clock.Now()
	all, err := l.clocksOf(ctx, l.to().coll, readpref.PrimaryPreferred())
	fixed, other := l.clocksOf(ctx, l.to().db.Collection(clockCollection), readpref.PrimaryPreferred())
	if err != nil || other != nil {
		last := l.fitness.last().spread
		last.failed, last.Most = true, last.Most+drift
		return last
	}
	took := l.fitness.clock.Since(began)
	known := map[string]storekit.Ahead{}
	for _, r := range append(all, fixed...) {
		ahead := r.at.Sub(began)
		known[r.host] = storekit.Ahead{Least: ahead - took, Most: ahead + time.Millisecond}
	}
	d := storekit.Apart(known)
	d.Most += drift
	return spread{Distance: d}
}

// shardWarning names two shards whose clocks differ by more than is assumed, or says that they
// couldn't be compared.
func (l *Ledger) shardWarning() string {
	assumed := l.stamp(time.Time{}, "", true).Skew
	s := l.fitness.last().spread
	if exceeds := s.Exceeds(assumed); exceeds != "" || !s.failed {
		return exceeds
	}
	return fmt.Sprintf("the clocks of the shards can't be compared, and are assumed to differ by %v at most: see that every shard has a member that answers, and that collStats is granted on %s and on %s", assumed, l.namespace(), l.to().db.Name()+"."+clockCollection)
}
