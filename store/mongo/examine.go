package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Examiner = (*Ledger)(nil)

// The checks of this store alone.
const (
	// CheckReplicaSet: there is a primary, and all members that can be elected answer.
	CheckReplicaSet = "replica-set"
	// CheckCollection: it is a plain collection.
	CheckCollection = "collection"
	// CheckSharding: all records of one key meet on one shard.
	CheckSharding = "sharding"
	// CheckConcerns: what writes and reads wait for.
	CheckConcerns = "concerns"
)

// Examine asks the server about itself, the collection, its indexes and the rights of the user. It changes
// nothing: the rights are tried by commands that match no document, or that no server carries out.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) {
	ctx = outsideSessions(ctx)
	if err := l.open(ctx, "examine", ""); err != nil {
		return nil, err
	}
	e := &storekit.Exam{Clock: l.fitness.clock, Scrub: func(text string) string { return l.secrets.Scrub(text) }}
	g, err := l.examineConnection(ctx, e)
	l.examineTLS(e)
	l.examineConcerns(e)
	if err != nil {
		e.Skip("no connection", CheckReplicaSet, store.CheckServerClocks, store.CheckLedger, CheckCollection, store.CheckExpiry, store.CheckConstraints,
			CheckSharding, store.CheckAppend, store.CheckRead, store.CheckTrim, store.CheckRoster)
		return e.Found, nil
	}
	l.examineServers(ctx, e, g)
	l.examineCollection(ctx, e)
	l.examineIndexes(ctx, e)
	l.examineShards(ctx, e, g)
	l.examineRights(ctx, e)
	return e.Found, nil
}

// explained is an error of an examination as it may be shown.
func (l *Ledger) explained(ctx context.Context, err error) error {
	return errors.Unwrap(l.failed(ctx, "examine", "", err)) // without the name of the operation
}

// examineConnection asks the server what it is.
func (l *Ledger) examineConnection(ctx context.Context, e *storekit.Exam) (greeting, error) {
	ctx, cancel := e.First(ctx)
	defer cancel()
	began := l.fitness.clock.Now()
	g, err := l.hello(ctx)
	if err != nil {
		e.Failed(store.CheckConnection, store.LevelFail, l.explained(ctx, err))
		return g, err
	}
	took := e.Since(began)
	g.service, err = l.findService(ctx, g)
	if err != nil {
		e.Failed(store.CheckConnection, store.LevelFail, l.explained(ctx, err))
		return g, err
	}
	info, _ := l.to().client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Raw() // for information
	version, _ := info.Lookup("version").StringValueOK()
	names := map[service]string{genuine: "MongoDB", cosmosRU: "Cosmos DB for MongoDB", gateway: "DocumentDB", ferretDB: "FerretDB, as MongoDB"}
	e.OK(store.CheckConnection, fmt.Sprintf("%s, %s %.40s, answered in %v", g.server, names[g.service], version, took))
	return g, nil
}

// examineTLS says how the connection is secured.
func (l *Ledger) examineTLS(e *storekit.Exam) {
	o := l.anew.options
	switch {
	case o == nil:
		e.Skip("the client is the caller's", store.CheckTLS)
	case o.TLSConfig != nil && o.TLSConfig.InsecureSkipVerify:
		e.Add(storekit.Flaw{
			Check: store.CheckTLS, What: "encrypted, but the server's certificate isn't verified (tlsInsecure or tlsAllowInvalidCertificates in the URI)",
			Remedy: "take that out of the URI, and name the server's authority by tlsCAFile",
		}.Finding(store.LevelWarn))
	case o.TLSConfig != nil:
		e.OK(store.CheckTLS, "encrypted, and the server's certificate is verified")
	case l.loopback():
		e.OK(store.CheckTLS, "not encrypted, to this machine alone")
	default:
		e.Add(storekit.Flaw{
			Check: store.CheckTLS, What: "not encrypted: who sees or changes the traffic sees and changes leases",
			Remedy: "turn TLS on at the servers, and add tls=true to the URI",
		}.Finding(store.LevelWarn))
	}
}

// loopback reports that all servers of the URI are on this machine.
func (l *Ledger) loopback() bool {
	for _, server := range l.login.hosts {
		host, _, err := net.SplitHostPort(server)
		if err != nil {
			host = server
		}
		if host != "localhost" && !net.ParseIP(strings.Trim(host, "[]")).IsLoopback() && !strings.HasSuffix(server, ".sock") {
			return false
		}
	}
	return true
}

// examineConcerns says what writes and reads wait for, whatever the URI says.
func (l *Ledger) examineConcerns(e *storekit.Exam) {
	text := "a write waits for a majority and its journal, and a read shows what a majority has, by the primary"
	if o := l.anew.options; o != nil {
		var overruled []string
		if w := o.WriteConcern; w != nil && (w.W != nil && w.W != "majority" || w.Journal != nil && !*w.Journal) {
			overruled = append(overruled, fmt.Sprintf("w=%v", w.W))
		}
		if r := o.ReadConcern; r != nil && r.Level != "majority" {
			overruled = append(overruled, "readConcernLevel="+r.Level)
		}
		if p := o.ReadPreference; p != nil && p.Mode().String() != "primary" {
			overruled = append(overruled, "readPreference="+p.Mode().String())
		}
		if len(overruled) > 0 {
			text += "; " + strings.Join(overruled, ", ") + " of the URI is overruled"
		}
	}
	e.OK(CheckConcerns, text)
}

// examineServers looks at the replica set, and at the clocks of its members or of the shards.
func (l *Ledger) examineServers(ctx context.Context, e *storekit.Exam, g greeting) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	s, err := l.now(ctx)
	switch missing := l.Note(); {
	case g.router:
		e.OK(CheckReplicaSet, "a router: the shards are replica sets")
	case !g.writable && g.member:
		e.Add(storekit.Flaw{Check: CheckReplicaSet, What: g.server + " is not the primary", Remedy: "connect to the replica set, without directConnection"}.Finding(store.LevelFail))
	case !g.writable:
		e.Add(storekit.Flaw{Check: CheckReplicaSet, What: g.server + " is not in a replica set yet", Remedy: "wait until it has started, or call rs.initiate()"}.Finding(store.LevelFail))
	case !g.member:
		e.OK(CheckReplicaSet, "one server, without copies")
	case missing != "":
		e.Add(storekit.Flaw{Check: CheckReplicaSet, What: fmt.Sprintf("%s, primary %s: %s", g.set, g.me, missing), Remedy: "start the members that don't answer, or let this machine reach them by these names"}.Finding(store.LevelWarn))
	case l.members.dial == nil:
		e.OK(CheckReplicaSet, fmt.Sprintf("%s, primary %s, and %d electable members", g.set, g.me, len(g.hosts)))
	default:
		e.OK(CheckReplicaSet, fmt.Sprintf("%s, primary %s: all of the %d electable members answer", g.set, g.me, len(g.hosts)))
	}
	if skewed := l.knowsSkew(g.service); skewed != nil {
		err = skewed
	}
	switch warning := l.Warning(); {
	case err != nil && g.router:
		e.Skip("no shard shows its clock: "+l.explained(ctx, err).Error(), store.CheckServerClocks)
	case err != nil:
		e.Failed(store.CheckServerClocks, store.LevelFail, l.explained(ctx, err))
	case warning != "":
		what, _, _ := strings.Cut(warning, ": ")
		e.Add(storekit.Flaw{Check: store.CheckServerClocks, What: what, Remedy: "synchronise the servers' clocks; until then short slots may be lost"}.Finding(store.LevelWarn))
	case s.Skew == 0:
		e.OK(store.CheckServerClocks, "there is one clock")
	default:
		e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as measured or assumed", s.Skew))
	}
}

// examineCollection looks whether the collection is there, and at its options.
func (l *Ledger) examineCollection(ctx context.Context, e *storekit.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	listing, stop := withoutDate(ctx)
	defer stop()
	there, flaws, err := l.collectionFlaws(listing)
	switch {
	case err != nil:
		e.Failed(store.CheckLedger, store.LevelFail, l.explained(ctx, err))
		e.Skip("see ledger", CheckCollection)
	case there == unlisted:
		e.Skip("no right to list the collections (listCollections)", store.CheckLedger, CheckCollection)
	case there == absent:
		e.Add(storekit.Flaw{Check: store.CheckLedger, What: "there is no collection " + l.namespace(), Remedy: "leasectl init"}.Finding(store.LevelFail))
		e.Skip("there is none", CheckCollection)
	default:
		e.OK(store.CheckLedger, "the collection "+l.namespace()+" is there")
		e.Flaws(CheckCollection, store.LevelFail, flaws, "a plain collection, without a validator")
	}
	for _, f := range flaws {
		if f.Check == store.CheckExpiry {
			e.Add(f.Finding(store.LevelFail))
		}
	}
}

// examineIndexes looks for those that delete records or keep them out.
func (l *Ledger) examineIndexes(ctx context.Context, e *storekit.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	listing, stop := withoutDate(ctx)
	defer stop()
	expires := len(e.Found) > 0 && e.Found[len(e.Found)-1].Check == store.CheckExpiry
	listed, flaws, err := l.indexFlaws(listing)
	switch {
	case err != nil:
		e.Failed(store.CheckConstraints, store.LevelFail, l.explained(ctx, err))
	case !listed:
		e.Skip("no right to list the indexes (listIndexes), or there is no collection", store.CheckConstraints)
	default:
		e.Flaws(store.CheckConstraints, store.LevelFail, flaws, "no unique index but that of _id")
	}
	switch {
	case expires: // One reason is enough.
	case err != nil || !listed:
		e.Skip("see constraints", store.CheckExpiry)
	default:
		e.Flaws(store.CheckExpiry, store.LevelFail, flaws, "no TTL index: nothing expires")
	}
}

// examineShards finds out by what the collection is sharded.
func (l *Ledger) examineShards(ctx context.Context, e *storekit.Exam, g greeting) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	if !g.router && g.service != cosmosRU {
		e.OK(CheckSharding, "not behind a router, so not sharded")
		return
	}
	is, err := l.layoutOf(ctx, g.service)
	_, unknown := errors.AsType[unverified](err)
	switch {
	case unknown && l.unsafe:
		f := fault.Failed(CheckSharding, store.LevelWarn, err)
		f.Text += "; unsafeUnverified accepts that"
		f.Remedy, _, _ = strings.Cut(f.Remedy, ", or accept")
		e.Add(f)
	case err != nil:
		e.Failed(CheckSharding, store.LevelFail, l.explained(ctx, err))
	default:
		e.OK(CheckSharding, map[layout]string{whole: "not sharded", byID: "sharded by _id", byType: "sharded by workerType"}[is])
	}
}

// noDocument matches none, whatever there is.
var noDocument = bson.D{{Key: fieldID, Value: bson.D{{Key: "$in", Value: bson.A{}}}}}

// examineRights tries what workers do, on no document.
func (l *Ledger) examineRights(ctx context.Context, e *storekit.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	to := l.to()
	status, err := l.rights(ctx)
	grant := func(actions, coll string) string {
		return fmt.Sprintf("grant %s on %s.%s, or the role readWrite on %s", actions, to.db.Name(), coll, to.db.Name())
	}
	judge := func(check string, level store.Level, err error, granted, remedy string) {
		if err == nil {
			e.OK(check, granted)
			return
		}
		explained := l.explained(ctx, err)
		if errors.Is(explained, store.ErrDenied) {
			f := fault.Failed(check, level, explained)
			f.Remedy = remedy
			e.Add(f)
			return
		}
		e.Failed(check, level, explained)
	}
	granted := "granted"
	if users, _ := status.LookupErr("authInfo", "authenticatedUsers"); status == nil || len(items(users)) == 0 {
		granted = "not denied (the server names no user and no rights)"
	}
	if err == nil {
		err = l.mayInsert(ctx, status)
	}
	judge(store.CheckAppend, store.LevelFail, err, granted, grant("insert", to.coll.Name()))
	_, err = first(ctx, to.coll, noDocument, projection)
	judge(store.CheckRead, store.LevelFail, err, "granted", grant("find", to.coll.Name()))
	_, err = to.coll.DeleteMany(ctx, noDocument)
	judge(store.CheckTrim, store.LevelWarn, err, "granted", grant("remove", to.coll.Name()))
	judge(store.CheckRoster, store.LevelWarn, l.onRosterMay(ctx, status), "granted", grant("find, insert, update and remove", l.roster().Name()))
}

// onRosterMay returns the server's denial of what workers do on the roster.
func (l *Ledger) onRosterMay(ctx context.Context, status bson.Raw) error {
	roster := l.roster()
	cursor, err := roster.Find(ctx, noDocument, options.Find().SetLimit(1))
	if err != nil {
		return err
	}
	_ = cursor.Close(ctx)
	if _, err := roster.UpdateMany(ctx, noDocument, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}); err != nil {
		return err
	}
	if _, err := roster.DeleteMany(ctx, noDocument); err != nil {
		return err
	}
	if lacks(status, l.to().db.Name(), roster.Name(), "insert") && !lacks(status, l.to().db.Name(), l.to().coll.Name(), "insert") {
		return fmt.Errorf("%w: no right to insert into %s.%s", store.ErrDenied, l.to().db.Name(), roster.Name())
	}
	return nil
}
