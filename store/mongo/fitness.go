package mongo

import (
	"cmp"
	"context"
	"encoding/hex"
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
	failed time.Time // the newest check, or zero if it didn't fail
	waits  int       // how often callers have waited for another primary
	// uuid is the collection's, which another has that was made in its place; empty if it is unknown.
	uuid string
	seen
}

// seen is what a check has found.
type seen struct {
	since  time.Time // when it began
	router bool
	is     service
	layout layout
	spread spread
}

// last is what the newest check has found that found the collection fit.
func (f *fitness) last() seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

// behindRouter reports whether the server is known to be a mongos.
func (f *fitness) behindRouter() bool {
	last := f.last()
	return last.router && last.is == genuine
}

// shape is how the collection is sharded, as far as is known.
func (f *fitness) shape() layout { return f.last().layout }

// history names the collection that is looked into.
func (f *fitness) history() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.uuid
}

// queuedKey is under what a context has how many waits for another primary were over when its caller began to wait for the gate.
type queuedKey struct{}

// queued notes that in a context.
func (f *fitness) queued(ctx context.Context) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	return context.WithValue(ctx, queuedKey{}, f.waits)
}

// wait takes in that a caller has waited for another primary, and hasWaited reports that one has since another began to wait for the
// gate.
func (f *fitness) wait() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits++
}

func (f *fitness) hasWaited(ctx context.Context) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, queued := ctx.Value(queuedKey{}).(int)
	return queued && before < f.waits
}

// renew lets the next operation look at the collection, which may be another one by now.
func (f *fitness) renew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = time.Time{}
}

// state reports whether the collection was found fit, and is to be looked at again. A router may shard it at any time.
func (f *fitness) state() (found, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	again := lookAgain
	if f.router {
		again = lookAtShardsAgain
	}
	failed := !f.failed.IsZero() && f.clock.Since(f.failed) < failedLook
	return f.found, !f.found || !failed && f.clock.Since(f.since) >= again
}

// fit checks, at the first use and then once an hour, with mongos every 4 minutes, whether the
// collection can hold a ledger. During a repeated check other operations continue, but not with
// mongos: they could win under another shard key.
func (l *Ledger) fit(ctx context.Context) error {
	f := &l.fitness
	found, due := f.state()
	if !due {
		return nil
	}
	if found && !f.last().router {
		select {
		case f.gate <- struct{}{}:
		default:
			return nil
		}
	} else {
		ctx = f.queued(ctx)
		select {
		case f.gate <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-f.gate }()
	if found, due = f.state(); !due {
		return nil
	}
	if d, ok := ctx.Deadline(); ok && found {
		// A look that hangs, as without config servers, leaves time for the operation. If
		// they are gone, no collection is resharded.
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer f.clock.AfterFunc(d.Sub(f.clock.Now())/2, cancel).Stop()
	}
	_, err := l.inspect(ctx)
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
	now, last := seen{since: f.clock.Now()}, f.last()
	var g greeting
	var there presence
	var err error
	layout := func(of service) {
		now.layout, err = l.layoutOf(ctx, of)
		if _, unknown := errors.AsType[unverified](err); unknown && l.unsafe {
			err = nil // The caller accepts the danger.
		}
	}
	// A later look by a router may be cut short. The shard key, which may change at any time, comes first then.
	if last.router {
		layout(last.is)
	}
	if err == nil {
		g, there, err = l.look(ctx)
		now.router, now.is = g.router, g.service
	}
	switch routed := g.router || g.service == cosmosRU; {
	case err != nil:
	case !routed:
		now.layout = whole
	case !last.router || g.service != last.is:
		layout(g.service)
	}
	if err == nil && g.router && now.layout != whole && g.service == genuine {
		now.spread = l.compareShards(ctx)
	}
	if err != nil {
		err = fmt.Errorf("inspect the collection: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.found, f.seen = there != absent, now
	case errors.Is(err, store.ErrRefused):
		f.found = false
	}
	return there, err
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
	if err == nil && !g.router && !g.writable && l.another(ctx, g) {
		g, err = l.hello(ctx)
	}
	if err != nil {
		return g, absent, err
	}
	if !g.router && !g.writable {
		return g, absent, errors.New(l.notPrimary(g).Error())
	}
	if g.service, err = l.lookAtService(ctx, g); err != nil {
		return g, absent, err
	}
	f, err := l.askFacts(ctx)
	if len(f.flaws) > 0 {
		return g, f.there, f.flaws[0].Refuse()
	}
	return g, f.there, cmp.Or(err, f.unread)
}

// facts is what the server says of the collection and its indexes.
type facts struct {
	there presence
	// listed is false if the indexes aren't known: rights are missing, there is no collection, or unread says why.
	listed bool
	unread error
	flaws  []storekit.Flaw
}

// askFacts finds out whether there is a collection, and what is wrong with it: its options and then its indexes. Where rights
// are missing to find out, it knows of nothing.
func (l *Ledger) askFacts(ctx context.Context) (f facts, err error) {
	ctx, cancel := withoutDate(ctx)
	defer cancel()
	found, err := listing(ctx)(l.to().db.ListCollections(ctx, bson.D{{Key: "name", Value: l.to().coll.Name()}}))
	switch {
	case err != nil && tolerate(err) != nil:
		return f, err
	case err != nil:
		f.there = unlisted
	case len(found) == 0:
		return f, nil
	default:
		f.there = present
	}
	for _, raw := range found {
		f.flaws = append(f.flaws, collectionFlaws(l.namespace(), raw)...)
		if _, uuid, ok := raw.Lookup("info", "uuid").BinaryOK(); ok {
			l.fitness.mu.Lock()
			l.fitness.uuid = hex.EncodeToString(uuid)
			l.fitness.mu.Unlock()
		}
	}
	found, err = listing(ctx)(l.to().coll.Indexes().List(ctx))
	f.listed, f.unread = err == nil, tolerate(err)
	for _, raw := range found {
		if flaw, dangerous := indexFlaw(l.namespace(), raw); dangerous {
			f.flaws = append(f.flaws, flaw)
		}
	}
	return f, nil
}

// listing reads all that a command lists.
func listing(ctx context.Context) func(cursor *mongo.Cursor, err error) ([]bson.Raw, error) {
	return func(cursor *mongo.Cursor, err error) (found []bson.Raw, _ error) {
		if err != nil {
			return nil, err
		}
		err = cursor.All(ctx, &found)
		return found, err
	}
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
