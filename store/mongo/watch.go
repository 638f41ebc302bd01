package mongo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/internal/fault"
)

var _ store.Watcher = (*Ledger)(nil)

const (
	// awaitsFor is how long the server may keep a watch waiting for news: idle, one costs two commands a
	// minute. A server that takes longer by answersIn has silently gone.
	awaitsFor = 30 * time.Second
	answersIn = 10 * time.Second
	// emptyGap is the least time between two questions to a server that answers at once that there is
	// no news.
	emptyGap = time.Second
	// watchEnds bounds how long a watch that ends tells the server so.
	watchEnds = time.Second
)

// Watch calls changed with the worker type of each release and override, when a majority has it: on the
// goroutine of Watch, by a change stream. It keeps one of the client's connections (so there must be more), and costs
// two commands a minute. It survives elections. Where the server has no change streams, as one that is in no
// replica set, the error matches errors.ErrUnsupported.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	err := l.enter(both, "watch", "")
	if err == nil {
		err = l.failed(both, "watch", "", l.watch(outsideSessions(both), changed))
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("mongo: watch: %w", fault.Ended(ctx))
	case l.closed.Load():
		return fmt.Errorf("mongo: watch: %w", store.ErrClosed)
	}
	return err
}

func (l *Ledger) watch(ctx context.Context, changed func(workerType string)) error {
	if l.single {
		return fmt.Errorf("%w: it needs a connection for itself, and the URI says maxPoolSize=1", errors.ErrUnsupported)
	}
	if l.copied || l.fitness.service() == cosmosRU {
		// Cosmos DB's streams have other options, and are paid for by each question:
		// https://learn.microsoft.com/azure/cosmos-db/mongodb/change-streams
		return errors.ErrUnsupported
	}
	stream, err := l.to().coll.Watch(ctx, freeing, options.ChangeStream().SetMaxAwaitTime(awaitsFor))
	if err != nil {
		return unstreamed(err)
	}
	defer func() {
		// Its cursor would stay in the server for minutes.
		ctx, cancel := l.fitness.clock.WithTimeout(context.WithoutCancel(ctx), watchEnds)
		defer cancel()
		_ = stream.Close(ctx)
	}()
	for first := true; ; first = false { // That takes what the stream began with, and asks nobody.
		asked := l.fitness.clock.Now()
		switch {
		case l.tryNext(ctx, stream):
			if ctx.Err() == nil {
				changed(freed(stream.Current))
			}
		case stream.Err() != nil:
			return unstreamed(stream.Err())
		case stream.ID() == 0:
			return fmt.Errorf("the change stream of %s has ended: the collection was dropped or renamed", l.namespace())
		case !first && l.fitness.clock.Since(asked) < emptyGap:
			timer := l.fitness.clock.Timer(emptyGap)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
			}
		}
	}
}

// tryNext asks once for news. Its deadline also takes the place of the client's own time-out, which may be
// shorter than the server waits.
func (l *Ledger) tryNext(ctx context.Context, stream *mongo.ChangeStream) bool {
	ctx, cancel := l.fitness.clock.WithTimeout(ctx, awaitsFor+answersIn)
	defer cancel()
	return stream.TryNext(ctx)
}

// freeing lets through what may free a lease, and what ends the stream, with the key alone.
var freeing = mongo.Pipeline{
	{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "operationType", Value: "insert"}, {Key: "fullDocument." + document.Kind, Value: bson.D{{Key: "$nin", Value: keeping()}}}},
		bson.D{{Key: "operationType", Value: "invalidate"}},
	}}}}},
	{{Key: "$project", Value: bson.D{{Key: "operationType", Value: 1}, {Key: "documentKey", Value: 1}}}},
}

// keeping are the kinds that free no lease: see store.Frees. One that isn't known here may.
func keeping() bson.A {
	return bson.A{string(store.KindGrant), string(store.KindReset), string(store.KindDone), string(store.KindSighting)}
}

// freed is the worker type of an event; empty if it may be any.
func freed(event bson.Raw) string {
	id, _ := event.Lookup("documentKey", fieldID).StringValueOK()
	workerType, _, _ := strings.Cut(id, ":")
	return workerType
}

// Codes of servers that have no change streams, or none with these options.
var noStreams = []int{
	codeCommandNotFound, codeCommandNotSupported, codeNotImplemented, codeFeatureNotSupported,
	40573, // MongoDB: "The $changeStream stage is only supported on replica sets".
	40324, // "Unrecognized pipeline stage name", of servers that only speak its protocol.
	136,   // Amazon DocumentDB, until modifyChangeStreams was run for the collection.
	codeBadValue, 9, 72, 40415,
}

// unstreamed is the error of a server that doesn't begin a change stream, or that gives something else
// for one.
func unstreamed(err error) error {
	if isReply(err) && hasCode(err, noStreams...) || errors.Is(err, mongo.ErrMissingResumeToken) {
		return fmt.Errorf("%w: the server has no change streams: %w", errors.ErrUnsupported, err)
	}
	return err
}
