package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/slotlease/slotlease/internal/scrub"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// Where ledgers are kept unless Options or the URI say otherwise.
const (
	DefaultDatabase   = "WorkerProcess"
	DefaultCollection = "WorkerLeases"
)

// Options of Open. Either URI or Client is required.
type Options struct {
	// URI is a connection string, mongodb:// or mongodb+srv://. Its path names the
	// database, and the parameter collection the collection:
	//
	//	mongodb://user:password@db1,db2/jobs?collection=leases&replicaSet=rs0
	//
	// The parameters serverSkew=150ms and unsafeUnverified=true are the fields of the
	// same names.
	// Credentials authenticate against the database admin unless authSource says
	// otherwise, whatever the path is. The other parameters go to the driver, but
	// read and write concerns and the read preference are overruled.
	URI string
	// Client is the caller's own client, instead of a URI. Close leaves it open.
	Client *mongo.Client

	// Database default: that of the URI's path, else DefaultDatabase.
	Database string
	// Collection default: that of the URI, else DefaultCollection.
	Collection string

	// ServerSkew is how far the clocks of servers may be off that can't be asked for
	// them: members of a replica set that don't answer, all members but the primary if
	// a Client is given, and shards. Clocks that can be asked are measured, and count
	// as measured, whatever this is; those that are off by more are warned of
	// (Ledger.Warning). Default: that of the URI, else 100 ms for replica sets and
	// sharded clusters, and none for a standalone server, which has the only clock.
	// At least a nanosecond; it can't be negative.
	ServerSkew time.Duration

	// AppName is shown in the server's log. Default: that of the URI, else
	// "slotlease". A Client keeps its own.
	AppName string

	// UnsafeUnverified accepts a collection with mongos even if rights are missing to
	// find out whether it is sharded. If it is sharded, two workers may hold one
	// lease.
	UnsafeUnverified bool

	// Clock times the hourly checks of the collection and the round trips by which
	// clocks are compared. If it has a method Boottime() time.Duration, as that of
	// workerlease.NewSystemClock has, that times the trips. Default: the real clock.
	Clock clock.Clock
}

// Ledger is a store.Ledger in a MongoDB collection.
type Ledger struct {
	client  *mongo.Client
	own     bool
	db      *mongo.Database
	coll    *mongo.Collection
	label   string
	skew    time.Duration
	unsafe  bool
	secrets scrub.Secrets
	fitness fitness
	members *members
	closed  atomic.Bool
}

var _ store.Ledger = (*Ledger)(nil)

// Open checks the options and makes a ledger of them. It reports everything that
// is wrong with them at once. It doesn't wait for a connection: a server that is
// down shows in the operations, and they work once it is up. Only for a
// mongodb+srv:// URI it asks the DNS, until ctx ends.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	l := &Ledger{}
	var errs []error
	bad := func(err error) { errs = append(errs, err) }
	if (o.URI == "") == (o.Client == nil) {
		bad(errors.New("options: set either URI or Client"))
	}
	if o.ServerSkew < 0 {
		bad(fmt.Errorf("options: ServerSkew %v must not be negative", o.ServerSkew))
	}
	var a address
	if o.URI != "" {
		var err error
		a, err = parseURI(o.URI)
		bad(err)
		l.secrets = a.secrets
	}
	if o.ServerSkew != 0 && a.skew != 0 && o.ServerSkew != a.skew {
		bad(fmt.Errorf("options: serverSkew %v in the URI and %v in Options: give one", a.skew, o.ServerSkew))
	}
	l.skew, l.unsafe = cmp.Or(o.ServerSkew, a.skew), o.UnsafeUnverified || a.unsafe
	database, err := document.Pick("database", o.Database, a.database, DefaultDatabase, checkDatabase)
	bad(err)
	collection, err := document.Pick("collection", o.Collection, a.collection, DefaultCollection, checkCollection)
	bad(err)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("mongo: open: %w", err)
	}
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	l.fitness = fitness{clock: o.Clock, gate: make(chan struct{}, 1)}
	l.client, l.label = o.Client, "client"
	var reach func(context.Context, string) (net.Conn, error)
	if o.Client == nil {
		l.own, l.label = true, a.hosts
		if l.client, reach, err = connect(ctx, a, o.AppName); err != nil {
			return nil, fmt.Errorf("mongo: open: %w", err)
		}
	}
	l.members = newMembers(o.Clock, cmp.Or(l.skew, defaultSkew), reach)
	l.bind(database, collection)
	l.secrets.Publish(l.namespace())
	return l, nil
}

// connect makes a client, which connects in the background, and what connects to one member.
func connect(ctx context.Context, a address, appName string) (*mongo.Client, func(context.Context, string) (net.Conn, error), error) {
	made := make(chan *options.ClientOptions, 1)
	// The driver looks up SRV records while it parses, and takes no context.
	go func() { made <- options.Client().ApplyURI(a.driver) }()
	var o *options.ClientOptions
	select {
	case o = <-made:
	case <-ctx.Done():
		return nil, nil, classify(ctx, fmt.Errorf("look up %s: %w", a.hosts, ctx.Err()), a.secrets)
	}
	o.SetMonitor(&event.CommandMonitor{Started: noteServer})
	switch {
	case appName != "":
		o.SetAppName(appName)
	case !a.appName:
		o.SetAppName("slotlease")
	}
	client, err := mongo.Connect(o)
	if err != nil {
		return nil, nil, classify(ctx, fmt.Errorf("uri: %w", err), a.secrets)
	}
	return client, dialer(o), nil
}

// bind makes the handles. The concerns are set here, on what every operation
// goes through, because a URI's or a client's own may be weaker.
func (l *Ledger) bind(database, collection string) {
	journal := true
	write := &writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journal}
	plain := &options.BSONOptions{}
	l.db = l.client.Database(database, options.Database().
		SetReadConcern(readconcern.Majority()).SetWriteConcern(write).SetReadPreference(readpref.Primary()).
		SetBSONOptions(plain).SetRegistry(bson.NewRegistry()))
	l.coll = l.db.Collection(collection, options.Collection().
		SetReadConcern(readconcern.Majority()).SetWriteConcern(write).SetReadPreference(readpref.Primary()).
		SetBSONOptions(plain).SetRegistry(bson.NewRegistry()))
}

// String names the collection and the hosts, never user or password.
func (l *Ledger) String() string {
	return fmt.Sprintf("mongo %s.%s at %s", l.db.Name(), l.coll.Name(), l.label)
}

// enter fails if the ledger is closed, the context is over, or the collection is
// not fit for a ledger.
func (l *Ledger) enter(ctx context.Context, op, key string) error {
	if err := l.open(ctx, op, key); err != nil {
		return err
	}
	return l.failed(ctx, op, key, l.fit(ctx))
}

// open fails if the ledger is closed or the context is over.
func (l *Ledger) open(ctx context.Context, op, key string) error {
	err := fault.Ended(callers(ctx))
	if l.closed.Load() {
		err = store.ErrClosed
	}
	return l.failed(ctx, op, key, err)
}

// Append inserts r unless its key exists, and returns when a majority of the
// replica set has it in its journal. See the package's documentation for what an
// error means; only store.ErrConflict and store.ErrInvalid say that nothing was
// stored.
func (l *Ledger) Append(ctx context.Context, r store.Record) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("mongo: append: %w", err)
	}
	key := store.Key(r.WorkerType, r.Seq)
	return insist(ctx, func(ctx context.Context) error {
		if err := l.enter(ctx, "append", key); err != nil {
			return err
		}
		_, err := l.coll.InsertOne(ctx, encode(r))
		return l.failed(ctx, "append", key, err)
	})
}

// Get returns the record at a key.
func (l *Ledger) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return store.Record{}, fmt.Errorf("mongo: get: %w", err)
	}
	key := store.Key(workerType, seq)
	return read(ctx, l, "get", key, func(ctx context.Context) (store.Record, error) {
		raw, err := l.coll.FindOne(ctx, bson.D{{Key: fieldID, Value: key}}, options.FindOne().SetProjection(projection)).Raw()
		switch {
		case errors.Is(err, mongo.ErrNoDocuments):
			return store.Record{}, store.ErrNotFound
		case err != nil:
			return store.Record{}, err
		}
		return decode(workerType, seq, raw), nil
	})
}

// read runs an operation without the deadline of its context.
func read[T any](ctx context.Context, l *Ledger, op, key string, do func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := withoutDate(ctx)
	defer cancel()
	if err := l.enter(ctx, op, key); err != nil {
		var none T
		return none, err
	}
	value, err := do(ctx)
	return value, l.failed(ctx, op, key, err)
}

// Tail returns the newest records, newest first. It gives no stamp. It costs one
// find, or two if there are unreachable keys among the newest.
func (l *Ledger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, store.Stamp{}, fmt.Errorf("mongo: tail: %w", err)
	}
	out, err := read(ctx, l, "tail", workerType, func(ctx context.Context) ([]store.Record, error) {
		if limit < 1 {
			return nil, nil
		}
		out, unreachable, err := l.walk(ctx, document.Query{WorkerType: workerType, NewestFirst: true, Limit: limit})
		switch {
		case err != nil:
			return nil, err
		case unreachable != "":
			out = slices.Insert(out, 0, document.Unreachable(workerType, unreachable))
		}
		return out, nil
	})
	return out, store.Stamp{}, err
}

// Trim deletes the oldest records below a Seq, but never the head: the newest
// record that a majority has.
func (l *Ledger) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return 0, fmt.Errorf("mongo: trim: %w", err)
	}
	return read(ctx, l, "trim", workerType, func(ctx context.Context) (int, error) { return l.trim(ctx, workerType, before) })
}

func (l *Ledger) trim(ctx context.Context, workerType string, before int64) (int, error) {
	old, err := document.Trimmable(workerType, before, store.TrimBatch, func(q document.Query) ([]store.Record, error) {
		records, _, err := l.walk(ctx, q)
		return records, err
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}
	ids := make([]string, len(old))
	for i, r := range old {
		ids[i] = store.Key(workerType, r.Seq)
	}
	result, err := l.coll.DeleteMany(ctx, bson.D{{Key: fieldID, Value: bson.D{{Key: "$in", Value: ids}}}})
	if result == nil {
		return 0, err
	}
	return int(result.DeletedCount), err
}

// WorkerTypes lists the worker types that have records. It goes by the keys
// alone and needs about one find for each type.
func (l *Ledger) WorkerTypes(ctx context.Context) ([]string, error) {
	return read(ctx, l, "list", "", l.list)
}

func (l *Ledger) list(ctx context.Context) ([]string, error) {
	var types []string
	for from := ""; ; {
		ids, err := l.idsFrom(ctx, from)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			slices.Sort(types)
			return types, nil
		}
		for _, id := range ids {
			if id < from {
				continue
			}
			// Past this id alone, or past all records of its worker type.
			from = id + "\x00"
			workerType, _, _ := strings.Cut(id, ":")
			if _, ok := document.SeqOf(workerType, id); ok && store.CheckWorkerType(workerType) == nil {
				types = append(types, workerType)
				from = workerType + ";"
			}
		}
	}
}

// Close ends the ledger; a client that was made from a URI is closed with it,
// and operations that are under way end with an error.
func (l *Ledger) Close(ctx context.Context) error {
	if l.closed.Swap(true) {
		return nil
	}
	l.members.end()
	if !l.own {
		return nil
	}
	return l.failed(ctx, "close", "", l.client.Disconnect(ctx))
}
