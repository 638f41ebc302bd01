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
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/internal/fault"
)

var _ store.Watcher = (*Ledger)(nil)

const (
	// awaitsFor is how long the server may keep a watch waiting for news: idle, one costs two commands a
	// minute. A server that takes longer by answersIn has silently gone.
	awaitsFor = 30 * time.Second
	// answersIn bounds what a watch does before, and its end. Other operations may have to wait for
	// its look at the collection.
	answersIn = 5 * time.Second
	// emptyGap is the least time between two questions to a server that answers at once that there is
	// no news.
	emptyGap = time.Second
)

// Watch calls changed with the worker type of each release and override, when a majority has it: on
// the goroutine of Watch, by a change stream. It keeps one of the client's connections (so there
// must be more), and costs two commands a minute. It ends with an error in an election, and when the
// client is made anew. Where the server has no change streams, as one that is in no replica set, the
// error matches errors.ErrUnsupported.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.runner.Life(), cancel)()
	err := l.watch(outsideSessions(both), changed)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("mongo: watch: %w", fault.Ended(ctx))
	case l.runner.Closed():
		return fmt.Errorf("mongo: watch: %w", store.ErrClosed)
	}
	return err
}

func (l *Ledger) watch(ctx context.Context, changed func(workerType string)) error {
	stream, err := l.stream(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// Its cursor would stay in the server for minutes.
		ctx, cancel := l.within(context.WithoutCancel(ctx), answersIn)
		defer cancel()
		_ = stream.Close(ctx)
	}()
	for first := true; ; first = false { // That takes what the stream began with, and asks nobody.
		asked := l.fitness.clock.Now()
		switch news, err := l.next(ctx, stream, asked); {
		case err != nil:
			return err
		case news:
			workerType, err := freed(stream.Current)
			if err != nil {
				return l.failed(ctx, "watch", "", err)
			}
			if ctx.Err() == nil {
				changed(workerType)
			}
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

// stream begins a change stream. It isn't the driver's, which resumes by itself, and without a pause: after
// an error, the caller begins anew when it is time. What is missed meanwhile is a hint.
func (l *Ledger) stream(ctx context.Context) (stream *mongo.Cursor, err error) {
	ctx, cancel := l.within(ctx, answersIn)
	defer cancel()
	if err := l.enter(ctx, "watch", ""); err != nil {
		return nil, err
	}
	stream, err = l.begin(ctx)
	return stream, l.failed(ctx, "watch", "", err)
}

func (l *Ledger) begin(ctx context.Context) (*mongo.Cursor, error) {
	if l.single {
		return nil, fmt.Errorf("%w: it needs a connection for itself, and the URI says maxPoolSize=1", errors.ErrUnsupported)
	}
	if l.fitness.last().is == cosmosRU {
		// Cosmos DB's streams have other options, and are paid for by each question:
		// https://learn.microsoft.com/azure/cosmos-db/mongodb/change-streams
		return nil, errors.ErrUnsupported
	}
	stream, err := l.to().db.RunCommandCursor(ctx, bson.D{
		{Key: "aggregate", Value: l.to().coll.Name()},
		{Key: "pipeline", Value: freeing},
		{Key: "cursor", Value: bson.D{}},
		{Key: "readConcern", Value: bson.D{{Key: "level", Value: "majority"}}},
	}, options.RunCmd().SetReadPreference(readpref.Primary()))
	switch {
	case err != nil && isReply(err) && hasCode(err, noStreams...):
		return nil, fmt.Errorf("%w: the server has no change streams: %w", errors.ErrUnsupported, err)
	case err != nil:
		return nil, err
	}
	stream.SetMaxAwaitTime(time.Duration(l.awaits.Load()))
	return stream, nil
}

// within is a context that ends after some time by the ledger's clock, of which the driver knows no
// date: it would take that for one of its own clock, and repeat commands until then.
func (l *Ledger) within(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := l.fitness.clock.WithTimeout(ctx, most)
	undated, done := withoutDate(ctx)
	return undated, func() { done(); cancel() }
}

// next asks once for news. If a time-out of the client is shorter than the server waits, it shall wait
// for half of that from the next watch on.
func (l *Ledger) next(ctx context.Context, stream *mongo.Cursor, asked time.Time) (news bool, err error) {
	awaits := time.Duration(l.awaits.Load())
	limited, cancel := l.within(ctx, awaits+answersIn)
	defer cancel()
	if stream.TryNext(limited) {
		return true, nil
	}
	took := l.fitness.clock.Since(asked)
	switch err = stream.Err(); {
	case err == nil && stream.ID() == 0:
		l.fitness.renew()
		err = fmt.Errorf("the change stream of %s has ended: the collection was dropped or renamed", l.namespace())
	case mongo.IsTimeout(err) && limited.Err() == nil && took < awaits:
		l.awaits.Store(int64(max(took/2, emptyGap)))
	}
	return false, l.failed(limited, "watch", "", err)
}

// freeing lets through what may free a lease, and what ends the stream, with the key alone.
var freeing = mongo.Pipeline{
	{{Key: "$changeStream", Value: bson.D{}}},
	{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "operationType", Value: "insert"}, {Key: "fullDocument." + document.Kind, Value: bson.D{{Key: "$nin", Value: keeping()}}}},
		bson.D{{Key: "operationType", Value: "invalidate"}},
	}}}}},
	{{Key: "$project", Value: bson.D{{Key: "operationType", Value: 1}, {Key: "documentKey", Value: 1}}}},
}

// keeping are the kinds that free no lease: see store.Frees. One that isn't known here may.
func keeping() bson.A {
	return bson.A{string(store.KindGrant), string(store.KindReset), string(store.KindDone), string(store.KindOutcome), string(store.KindSighting)}
}

// freed is the worker type of an event; empty if it may be any.
func freed(event bson.Raw) (workerType string, err error) {
	if _, err := event.LookupErr("operationType"); err != nil {
		return "", fmt.Errorf("%w: the server gives something else for a change stream", errors.ErrUnsupported)
	}
	id, _ := event.Lookup("documentKey", fieldID).StringValueOK()
	workerType, _, _ = strings.Cut(id, ":")
	return workerType, nil
}

// noStreams are codes of servers that have no change streams, or none of this kind.
var noStreams = []int{
	codeCommandNotFound, codeCommandNotSupported, codeNotImplemented, codeFeatureNotSupported,
	40573, // MongoDB: "The $changeStream stage is only supported on replica sets".
	40324, // "Unrecognized pipeline stage name", of servers that only speak its protocol.
	136,   // Amazon DocumentDB, until modifyChangeStreams was run for the collection.
	codeBadValue, 9, 72, 40415,
}
