package mongo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/slotlease/slotlease/store"
)

// lookAgain is how long a check of the collection counts.
const lookAgain = time.Hour

// fitness remembers that the collection can keep the promises of a ledger.
type fitness struct {
	clock clock.Clock
	// gate lets one goroutine check at a time.
	gate chan struct{}

	mu     sync.Mutex
	found  bool
	since  time.Time
	router bool
}

func (f *fitness) behindRouter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.router
}

// state reports whether the collection was found fit, and whether that was recent.
func (f *fitness) state() (found, fresh bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.found, f.found && f.clock.Since(f.since) < lookAgain
}

// fit checks, at the first use and then once an hour, whether the collection can hold
// a ledger. During a repeated check other operations continue.
func (l *Ledger) fit(ctx context.Context) error {
	f := &l.fitness
	found, fresh := f.state()
	if fresh {
		return nil
	}
	if found {
		select {
		case f.gate <- struct{}{}:
		default:
			return nil
		}
	} else {
		select {
		case f.gate <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-f.gate }()
	if found, fresh = f.state(); fresh {
		return nil
	}
	_, err := l.inspect(ctx)
	if err != nil && found && !errors.Is(err, store.ErrRefused) {
		// It was fit, and the check failed. The next operation tries again.
		return nil
	}
	return err
}

// presence says whether the collection exists, as far as is known.
type presence int

const (
	absent presence = iota
	present
	// unlisted collections may not be listed with the rights that we have.
	unlisted
)

// inspect finds out whether the collection exists and is fit, and remembers it. A
// collection that doesn't exist yet is fit, but is checked again, because it may be
// created in an unfit way.
func (l *Ledger) inspect(ctx context.Context) (presence, error) {
	f := &l.fitness
	router, there, err := l.look(ctx)
	if err != nil {
		err = fmt.Errorf("inspect the collection: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.found, f.since, f.router = there != absent, f.clock.Now(), router
	case errors.Is(err, store.ErrRefused):
		f.found = false
	}
	return there, err
}

// look asks the server. Where rights are missing to find out, it assumes the best,
// except about sharding with a router.
func (l *Ledger) look(ctx context.Context) (router bool, there presence, err error) {
	g, err := l.hello(ctx)
	if err != nil {
		return false, absent, err
	}
	if !g.router && !g.writable {
		return false, absent, notPrimary(g)
	}
	listing, cancel := withoutDate(ctx)
	defer cancel()
	there, err = l.lookAtCollection(listing)
	if err == nil && there != absent {
		err = l.lookAtIndexes(listing)
	}
	if err == nil && g.router {
		err = l.lookForShards(ctx)
	}
	return g.router, there, err
}

// lookAtCollection judges the collection's options, if there is a collection.
func (l *Ledger) lookAtCollection(ctx context.Context) (presence, error) {
	cursor, err := l.db.ListCollections(ctx, bson.D{{Key: "name", Value: l.coll.Name()}})
	if err != nil {
		return unlisted, tolerate(err)
	}
	var found []bson.Raw
	if err := cursor.All(ctx, &found); err != nil {
		return absent, err
	}
	for _, raw := range found {
		if why := unfitCollection(raw); why != "" {
			return present, fmt.Errorf("%w: %s is %s", store.ErrRefused, l.namespace(), why)
		}
	}
	if len(found) == 0 {
		return absent, nil
	}
	return present, nil
}

// lookAtIndexes refuses a TTL index: it would delete the head.
func (l *Ledger) lookAtIndexes(ctx context.Context) error {
	cursor, err := l.coll.Indexes().List(ctx)
	if err != nil {
		return tolerate(err)
	}
	var found []bson.Raw
	if err := cursor.All(ctx, &found); err != nil {
		return err
	}
	for _, raw := range found {
		if why := unfitIndex(raw); why != "" {
			return fmt.Errorf("%w: %s has %s", store.ErrRefused, l.namespace(), why)
		}
	}
	return nil
}

// unfitIndex returns the danger of an index, by its entry in listIndexes.
func unfitIndex(raw bson.Raw) string {
	name, _ := raw.Lookup("name").StringValueOK()
	if _, err := raw.LookupErr("expireAfterSeconds"); err == nil {
		return fmt.Sprintf("the TTL index %.80q, which would delete the newest record: drop it", name)
	}
	// The index over _id has no such field.
	if unique, _ := raw.Lookup("unique").BooleanOK(); unique && name != "_id_" {
		return fmt.Sprintf("the unique index %.80q, which would keep records out: drop it", name)
	}
	return ""
}

// lookForShards refuses a sharded collection, because _id is unique only in each shard,
// and a collection that may be sharded.
func (l *Ledger) lookForShards(ctx context.Context) error {
	stats, err := l.db.RunCommand(ctx, bson.D{{Key: "collStats", Value: l.coll.Name()}}).Raw()
	if hasCode(err, codeNamespaceNotFound) {
		return nil
	}
	if err != nil && !isReply(err) {
		return err
	}
	if sharded, ok := stats.Lookup("sharded").BooleanOK(); err == nil && ok {
		return l.judgeShards(sharded, true)
	}
	collections := l.client.Database("config").Collection("collections", options.Collection().
		SetReadConcern(readconcern.Majority()).SetReadPreference(readpref.Primary()))
	entry, err := first(ctx, collections, bson.D{{Key: fieldID, Value: l.namespace()}}, bson.D{})
	switch {
	case err == nil && entry == nil:
		return nil
	case err != nil && !isReply(err):
		return err
	case err != nil:
		return l.judgeShards(false, false)
	}
	return l.judgeShards(shardedEntry(entry), true)
}

// shardedEntry reads a collection's entry in config.collections. There are
// entries of dropped collections, and of collections that are only known there
// and not split.
func shardedEntry(raw bson.Raw) bool {
	dropped, _ := raw.Lookup("dropped").BooleanOK()
	whole, _ := raw.Lookup("unsplittable").BooleanOK()
	return !dropped && !whole
}

func (l *Ledger) judgeShards(sharded, known bool) error {
	switch {
	case sharded:
		return fmt.Errorf("%w: %s is sharded, and _id unique only in each shard: use a collection that isn't", store.ErrRefused, l.namespace())
	case !known && !l.unsafe:
		return fmt.Errorf("%w: can't find out whether %s is sharded: grant the action collStats on it, or accept the danger with UnsafeUnverified", store.ErrRefused, l.namespace())
	}
	return nil
}

// isReply reports whether the server answered, if only with an error.
func isReply(err error) bool {
	_, ok := errors.AsType[mongo.CommandError](err)
	return ok && !mongo.IsNetworkError(err) && !mongo.IsTimeout(err)
}

// tolerate ignores errors of missing rights, unknown commands and missing collections.
func tolerate(err error) error {
	if hasCode(err, codeUnauthorized, codeCommandNotFound, codeNamespaceNotFound) {
		return nil
	}
	return err
}
