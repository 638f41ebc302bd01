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

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// lookAgain is how long a check of the collection counts.
	lookAgain = time.Hour
	// failedLook is how long a failed check of a collection that was found fit counts: else all
	// operations of a ledger would try in turn, and wait for each other.
	failedLook = 5 * time.Second
)

// fitness remembers that the collection can keep the promises of a ledger.
type fitness struct {
	clock clock.Clock
	// gate lets one goroutine check at a time.
	gate chan struct{}

	mu     sync.Mutex
	found  bool
	since  time.Time
	failed time.Time // the newest check, or zero if it didn't fail
	router bool
	is     service

	// layout is as of the newest look at the shards, at sharded.
	layout  layout
	sharded time.Time
	spread  spread
}

// behindRouter reports whether the server is known to be a mongos.
func (f *fitness) behindRouter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.router && f.is == genuine
}

// service is what speaks the protocol, as of the newest look at everything.
func (f *fitness) service() service {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.is
}

// routed reports whether the server says that it is a router, and so may shard the
// collection at any time.
func (f *fitness) routed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.router
}

// shape is how the collection is sharded, as far as is known.
func (f *fitness) shape() layout {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.layout
}

// due says what is to be looked at.
type due int

const (
	nothing due = iota
	shards
	everything
)

// state reports whether the collection was found fit, and what is to be looked at again.
func (f *fitness) state() (found bool, look due) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.found && !f.failed.IsZero() && f.clock.Since(f.failed) < failedLook:
	case !f.found || f.clock.Since(f.since) >= lookAgain:
		look = everything
	case f.router && f.clock.Since(f.sharded) >= lookAtShardsAgain:
		look = shards
	}
	return f.found, look
}

// fit checks, at the first use and then once an hour, whether the collection can hold
// a ledger; with mongos, the shard key every 4 minutes. During a repeated check other
// operations continue, but not with mongos: they could win under another shard key.
func (l *Ledger) fit(ctx context.Context) error {
	f := &l.fitness
	found, look := f.state()
	if look == nothing {
		return nil
	}
	if found && !f.routed() {
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
	found, look = f.state()
	if d, ok := ctx.Deadline(); ok && found {
		// A look that hangs, as without config servers, leaves time for the operation. If
		// they are gone, no collection is resharded.
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer f.clock.AfterFunc(d.Sub(f.clock.Now())/2, cancel).Stop()
	}
	var err error
	switch look {
	case nothing:
		return nil
	case shards:
		err = l.inspectShards(ctx, f.service())
	case everything:
		_, err = l.inspect(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = time.Time{}
	if err != nil && found && !errors.Is(err, store.ErrRefused) {
		// It was fit, and the check failed. An operation in some seconds tries again.
		f.failed = f.clock.Now()
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
	g, there, err := l.look(ctx)
	if err == nil && (g.router || g.service == cosmosRU) {
		err = l.inspectShards(ctx, g.service)
	}
	if err != nil {
		err = fmt.Errorf("inspect the collection: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.found, f.since, f.router, f.is = there != absent, f.clock.Now(), g.router, g.service
	case errors.Is(err, store.ErrRefused):
		f.found = false
	}
	return there, err
}

// inspectShards finds out how the collection is sharded, and remembers it.
func (l *Ledger) inspectShards(ctx context.Context, of service) error {
	f := &l.fitness
	now := f.clock.Now()
	is, err := l.layoutOf(ctx, of)
	if _, unknown := errors.AsType[unverified](err); unknown && l.unsafe {
		err = nil // The caller accepts the danger.
	}
	var apart spread
	if err == nil && is != whole && of == genuine {
		apart = l.compareShards(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.layout, f.sharded, f.spread = is, now, apart
	case errors.Is(err, store.ErrRefused):
		f.found = false
	}
	return err
}

// layoutOf finds out how the collection is sharded. The error may be unverified, with the layout that is to
// be assumed then.
func (l *Ledger) layoutOf(ctx context.Context, of service) (layout, error) {
	switch of {
	case cosmosRU:
		return l.lookAtCosmosKey(ctx)
	case gateway:
		return l.lookAtListedKey(ctx)
	case genuine, ferretDB:
	}
	return l.lookForShards(ctx)
}

// look asks the server. Where rights are missing to find out, it assumes the best.
func (l *Ledger) look(ctx context.Context) (g greeting, there presence, err error) {
	g, err = l.hello(ctx)
	if err != nil {
		return g, absent, err
	}
	if !g.router && !g.writable && !l.copied {
		return g, absent, notPrimary(g)
	}
	if g.service, err = l.lookAtService(ctx, g); err != nil {
		return g, absent, err
	}
	listing, cancel := withoutDate(ctx)
	defer cancel()
	there, err = l.lookAtCollection(listing)
	if err == nil && there != absent {
		err = l.lookAtIndexes(listing)
	}
	return g, there, err
}

// lookAtCollection judges the collection's options, if there is a collection.
func (l *Ledger) lookAtCollection(ctx context.Context) (presence, error) {
	there, flaws, err := l.collectionFlaws(ctx)
	if err == nil && len(flaws) > 0 {
		err = flaws[0].Refuse()
	}
	return there, err
}

// collectionFlaws finds out whether there is a collection, and what is wrong with its options.
func (l *Ledger) collectionFlaws(ctx context.Context) (presence, []storekit.Flaw, error) {
	cursor, err := l.to().db.ListCollections(ctx, bson.D{{Key: "name", Value: l.to().coll.Name()}})
	if err != nil {
		return unlisted, nil, tolerate(err)
	}
	var found []bson.Raw
	if err := cursor.All(ctx, &found); err != nil || len(found) == 0 {
		return absent, nil, err
	}
	var flaws []storekit.Flaw
	for _, raw := range found {
		flaws = append(flaws, collectionFlaws(l.namespace(), raw)...)
	}
	return present, flaws, nil
}

// lookAtIndexes refuses a TTL index: it would delete the head.
func (l *Ledger) lookAtIndexes(ctx context.Context) error {
	_, flaws, err := l.indexFlaws(ctx)
	if err == nil && len(flaws) > 0 {
		err = flaws[0].Refuse()
	}
	return err
}

// indexFlaws lists the indexes that are a danger. listed is false if rights are missing to list any.
func (l *Ledger) indexFlaws(ctx context.Context) (listed bool, flaws []storekit.Flaw, err error) {
	cursor, err := l.to().coll.Indexes().List(ctx)
	if err != nil {
		return false, nil, tolerate(err)
	}
	var found []bson.Raw
	if err := cursor.All(ctx, &found); err != nil {
		return false, nil, err
	}
	for _, raw := range found {
		if flaw, dangerous := indexFlaw(l.namespace(), raw); dangerous {
			flaws = append(flaws, flaw)
		}
	}
	return true, flaws, nil
}

// indexFlaw returns the danger of an index of a collection, by its entry in listIndexes.
func indexFlaw(of string, raw bson.Raw) (f storekit.Flaw, dangerous bool) {
	name, _ := raw.Lookup("name").StringValueOK()
	if _, err := raw.LookupErr("expireAfterSeconds"); err == nil {
		return storekit.Flaw{Check: store.CheckExpiry, What: fmt.Sprintf("%s has the TTL index %.80q, which would delete the newest record", of, name), Remedy: "drop it"}, true
	}
	// The index over _id has no such field.
	if unique, _ := raw.Lookup("unique").BooleanOK(); unique && name != "_id_" {
		return storekit.Flaw{Check: store.CheckConstraints, What: fmt.Sprintf("%s has the unique index %.80q, which would keep records out", of, name), Remedy: "drop it"}, true
	}
	return storekit.Flaw{}, false
}

// isReply reports whether the server answered a command, if only with an error.
func isReply(err error) bool {
	_, ok := errors.AsType[mongo.CommandError](err)
	return ok && !mongo.IsNetworkError(err) && !mongo.IsTimeout(err)
}

// isAnswer is isReply for a write, too.
func isAnswer(err error) bool {
	_, ok := errors.AsType[mongo.WriteException](err)
	return ok || isReply(err)
}

// tolerate ignores errors of missing rights, unknown commands and missing collections: those that
// don't pass by themselves. Any other reply may.
func tolerate(err error) error {
	switch {
	case hasCode(err, codeUnauthorized, codeCommandNotFound, codeCommandNotSupported, codeNotImplemented, codeFeatureNotSupported, codeNamespaceNotFound):
		return nil
	case hasCode(err, codeAtlasError) && atlasDenies.MatchString(err.Error()):
		return nil
	}
	return err
}
