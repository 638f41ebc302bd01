package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
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
	//
	// Credentials authenticate where every driver would: in the database that authSource
	// names, else in that of the path, else in admin; with the mechanisms MONGODB-X509,
	// MONGODB-AWS, MONGODB-OIDC and GSSAPI in $external. The other parameters go to the
	// driver, but read and write concerns and the read preference are overruled. The files of
	// tlsCAFile and tlsCertificateKeyFile are read again when connections are made anew.
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
	// find out whether it is sharded, and with Azure DocumentDB and Cosmos DB for MongoDB
	// (RU) by what. If that is another key than _id or the worker type, two workers may
	// hold one lease. What mongos says is sharded needs find on config.collections even so.
	UnsafeUnverified bool

	// Clock times the hourly checks of the collection and the round trips by which
	// clocks are compared. If it has a method Boottime() time.Duration, as that of
	// workerlease.NewSystemClock has, that times the trips. Default: the real clock.
	Clock clock.Clock

	dialer options.ContextDialer // of tests, if not nil
}

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
	var a address
	if o.URI != "" {
		var err error
		a, err = parseURI(o.URI)
		bad(err)
		l.secrets = a.secrets
	}
	var err error
	l.skew, err = storekit.ServerSkew(o.ServerSkew, a.skew, 0)
	bad(err)
	l.unsafe = o.UnsafeUnverified || a.unsafe
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
	client := o.Client
	l.awaits.Store(int64(awaitsFor))
	l.label, l.login = "client", &login{srv: strings.HasPrefix(a.driver, schemeSRV)}
	l.secrets.Publish(database + "." + collection)
	l.newRunner()
	if o.Client == nil {
		l.own, l.label = true, a.hosts
		var err error
		if client, err = l.connect(ctx, a, o); err != nil {
			return nil, l.runner.Failed(ctx, "open", "", err)
		}
	}
	l.members = newMembers(o.Clock, cmp.Or(l.skew, defaultSkew), l.login.reach)
	l.bind(client, database, collection)
	return l, nil
}

// connect makes a client of the ledger's own, which connects in the background.
func (l *Ledger) connect(ctx context.Context, a address, own Options) (*mongo.Client, error) {
	if err := lookUpTXT(ctx, a); err != nil {
		return nil, fmt.Errorf("look up %s: %w", a.hosts, err)
	}
	made := make(chan *options.ClientOptions, 1)
	// The driver looks up SRV records while it parses, and takes no context.
	go func() { made <- options.Client().ApplyURI(a.driver) }()
	var o *options.ClientOptions
	select {
	case o = <-made:
	case <-ctx.Done():
		late := &net.DNSError{Err: "no answer in time", Name: a.hosts, IsTimeout: true}
		return nil, fmt.Errorf("%w: %w", ctx.Err(), late)
	}
	o.Dialer = own.dialer
	l.single = o.MaxPoolSize != nil && *o.MaxPoolSize == 1
	srv := l.login.srv
	encryption, err := encryptionOf(a.driver)
	if err != nil {
		return nil, fmt.Errorf("uri: %w", err)
	}
	if encryption != nil {
		o.TLSConfig = encryption.now()
	}
	l.login = loginOf(o, l.fitness.clock.Now())
	l.login.encryption = encryption
	l.login.srv = srv
	l.hangUp = endable(o)
	// Who is overloaded is left alone by the engine, which knows how long a try is of use.
	o.SetMonitor(commandMonitor()).SetServerMonitor(l.login.monitor(l.fitness.clock)).SetMaxAdaptiveRetries(0)
	switch {
	case own.AppName != "":
		o.SetAppName(own.AppName)
	case !a.appName:
		o.SetAppName("slotlease")
	}
	client, err := mongo.Connect(o)
	if err != nil {
		return nil, fmt.Errorf("uri: %w", err)
	}
	l.anew.options = o
	return client, nil
}

// dialing is a dialer for the driver.
type dialing storekit.Dialer

// DialContext connects to a server. The driver calls it.
func (d dialing) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d(ctx, network, addr)
}

// endable makes all connections of a client with these options end when hangUp is called.
func endable(o *options.ClientOptions) (hangUp context.CancelFunc) {
	var d options.ContextDialer = &net.Dialer{}
	if o.Dialer != nil {
		d = o.Dialer
	}
	life, hangUp := context.WithCancel(context.Background())
	dial := storekit.DialUntil(life, d.DialContext)
	o.SetDialer(dialing(func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		return dial(ctx, network, addr)
	}))
	return hangUp
}

// handles are what operations go through.
type handles struct {
	client *mongo.Client
	db     *mongo.Database
	coll   *mongo.Collection
}

// to are the handles of now.
func (l *Ledger) to() *handles { return l.handles.Load() }

// bind makes the handles. The concerns are set here, on what every operation
// goes through, because a URI's or a client's own may be weaker.
func (l *Ledger) bind(client *mongo.Client, database, collection string) {
	journal := true
	write := &writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journal}
	plain := &options.BSONOptions{}
	db := client.Database(database, options.Database().
		SetReadConcern(readconcern.Majority()).SetWriteConcern(write).SetReadPreference(readpref.Primary()).
		SetBSONOptions(plain).SetRegistry(bson.NewRegistry()))
	coll := db.Collection(collection, options.Collection().
		SetReadConcern(readconcern.Majority()).SetWriteConcern(write).SetReadPreference(readpref.Primary()).
		SetBSONOptions(plain).SetRegistry(bson.NewRegistry()))
	l.handles.Store(&handles{client, db, coll})
}
