package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

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
	// CheckHints: the server says at once that a lease was released.
	CheckHints = "hint-right"
)

// Examine asks the server about itself, the collection, its indexes and the rights of the user. It changes
// nothing: the rights are tried by commands that match no document, or that no server carries out.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) {
	if err := l.open(ctx, "examine", ""); err != nil {
		return nil, err
	}
	x := &exam{Ledger: l}
	table := storekit.Checks{Rows: slices.Concat(x.servers(), x.collection(), x.rights()), Runner: l.runner, Clock: l.fitness.clock}
	for i, row := range table.Rows {
		if row.Alone {
			continue
		}
		table.Rows[i].Ask = func(ctx context.Context) (string, error) {
			sound, err := insist(ctx, row.Ask)
			return sound, l.seek(err)
		}
	}
	return table.Examine(ctx)
}

// exam is what the rows of one examination have found out for later ones. A row that has run out of time may still be asking
// beside the next one.
type exam struct {
	*Ledger

	server atomic.Pointer[greeting]
	time   atomic.Pointer[stamped]
	known  atomic.Pointer[facts]
	status atomic.Pointer[bson.Raw] // of the user's rights
}

type stamped struct {
	store.Stamp

	err error
}

// servers are the rows of the connection and of what is behind it.
func (x *exam) servers() []storekit.Check {
	return []storekit.Check{
		{Name: store.CheckConnection, Level: store.LevelFail, Needed: "no connection", Ask: x.connected},
		{Name: store.CheckTLS, Level: store.LevelWarn, Alone: true, Ask: x.secured},
		{Name: CheckConcerns, Alone: true, Ask: func(context.Context) (string, error) {
			return "a write waits for a majority and its journal, and a read shows what a majority has, by the primary, whatever the URI says", nil
		}},
		{Name: CheckReplicaSet, Level: store.LevelFail, Ask: x.replicaSet},
		{Name: store.CheckServerClocks, Level: store.LevelFail, Ask: x.clocks},
	}
}

// connected asks the server what it is.
func (x *exam) connected(ctx context.Context) (string, error) {
	g, err := x.hello(ctx)
	if err != nil {
		return "", err
	}
	if g.service, err = x.findService(ctx, g); err != nil {
		return "", err
	}
	x.server.Store(&g)
	info, _ := x.to().client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Raw() // for information
	version, _ := info.Lookup("version").StringValueOK()
	names := map[service]string{genuine: "MongoDB", cosmosRU: "Cosmos DB for MongoDB", gateway: "DocumentDB", ferretDB: "FerretDB, as MongoDB"}
	return fmt.Sprintf("%s, %s %.40s, answered", g.server, names[g.service], version), nil
}

// secured says how the connection is secured.
func (x *exam) secured(context.Context) (string, error) {
	o := x.anew.options
	switch {
	case o == nil:
		return "", storekit.Skip("the client is the caller's")
	case o.TLSConfig != nil && o.TLSConfig.InsecureSkipVerify:
		return storekit.Found("", storekit.Flaw{
			Check: store.CheckTLS, What: "encrypted, but the server's certificate isn't verified (tlsInsecure in the URI)",
			Remedy: "take that out of the URI, and name the server's authority by tlsCAFile",
		})
	case o.TLSConfig != nil:
		return "encrypted, and the server's certificate is verified", nil
	case x.loopback():
		return "not encrypted, to this machine alone", nil
	}
	return storekit.Found("", storekit.Flaw{
		Check: store.CheckTLS, What: "not encrypted: who sees or changes the traffic sees and changes leases",
		Remedy: "turn TLS on at the servers, and add tls=true to the URI",
	})
}

// loopback reports that all servers of the URI are on this machine.
func (l *Ledger) loopback() bool {
	return !slices.ContainsFunc(l.login.hosts, func(server string) bool {
		host, _, err := net.SplitHostPort(server)
		if err != nil {
			host = server
		}
		return host != "localhost" && !net.ParseIP(strings.Trim(host, "[]")).IsLoopback() && !strings.HasSuffix(server, ".sock")
	})
}

// replicaSet looks at the replica set, and reads the clocks of its members or of the shards.
func (x *exam) replicaSet(ctx context.Context) (string, error) {
	s, err := x.now(ctx)
	x.time.Store(&stamped{s, err})
	g, missing := x.server.Load(), x.Note()
	switch {
	case g.router:
		return "a router: the shards are replica sets", nil
	case !g.writable:
		return storekit.Found("", x.notPrimary(*g))
	case !g.member:
		return "one server, without copies", nil
	case missing != "":
		return storekit.Found("", storekit.Flaw{
			Check: CheckReplicaSet, Level: store.LevelWarn, What: fmt.Sprintf("%s, primary %s: %s", g.set, g.me, missing),
			Remedy: "start the members that don't answer, or let this machine reach them by these names",
		})
	case x.members.dial == nil:
		return fmt.Sprintf("%s, primary %s, and %d electable members", g.set, g.me, len(g.hosts)), nil
	}
	return fmt.Sprintf("%s, primary %s: all of the %d electable members answer", g.set, g.me, len(g.hosts)), nil
}

// clocks judges what reading them has given.
func (x *exam) clocks(ctx context.Context) (string, error) {
	g, s := x.server.Load(), x.time.Load()
	if s == nil {
		return "", storekit.Skip("no answer in time")
	}
	err := s.err
	if skewed := x.knowsSkew(g.service); skewed != nil {
		err = skewed
	}
	switch warning := x.Warning(); {
	case err != nil && g.router:
		return "", storekit.Skip("no shard shows its clock: " + errors.Unwrap(x.failed(ctx, "examine", "", err)).Error())
	case err != nil:
		return "", err
	case warning != "":
		what, _, _ := strings.Cut(warning, ": ")
		return storekit.Found("", storekit.Flaw{
			Check: store.CheckServerClocks, Level: store.LevelWarn, What: what, Remedy: "synchronise the servers' clocks; until then short slots may be lost",
		})
	case s.Skew == 0:
		return "there is one clock", nil
	case g.member && x.members.dial != nil && x.Note() == "":
		return fmt.Sprintf("apart by %v at most, as measured", s.Skew), nil
	}
	return storekit.Assumed(s.Skew, "not every server can be asked").Ask(ctx) // Nothing shows that it is so.
}

// collection are the rows of the collection, on which operations depend, too.
func (x *exam) collection() []storekit.Check {
	return []storekit.Check{
		{Name: store.CheckLedger, Level: store.LevelFail, Ask: func(ctx context.Context) (string, error) {
			f, err := x.askFacts(ctx)
			switch x.known.Store(&f); {
			case err != nil:
				return "", err
			case f.there == unlisted:
				return "", storekit.Skip("no right to list the collections (listCollections)")
			case f.there == absent:
				return storekit.Found("", storekit.Flaw{Check: store.CheckLedger, What: "there is no collection " + x.namespace(), Remedy: "leasectl init"})
			}
			return "the collection " + x.namespace() + " is there", nil
		}},
		x.fact(CheckCollection, "a plain collection, without a validator", "see ledger", func(f facts) bool { return f.there == present }),
		x.fact(store.CheckExpiry, "no TTL index: nothing expires", "see constraints", func(f facts) bool { return f.listed }),
		x.fact(store.CheckConstraints, "no unique index but that of _id", "no right to list the indexes (listIndexes), or there is no collection", func(f facts) bool { return f.listed }),
		{Name: CheckSharding, Level: store.LevelFail, Ask: x.sharding},
	}
}

// fact is the row of something that the server says of the collection, if it is known.
func (x *exam) fact(check, sound, unknown string, known func(f facts) bool) storekit.Check {
	return storekit.Check{Name: check, Level: store.LevelFail, Ask: func(context.Context) (string, error) {
		f := x.known.Load()
		if f == nil {
			return "", storekit.Skip("see ledger")
		}
		flaws := slices.DeleteFunc(slices.Clone(f.flaws), func(f storekit.Flaw) bool { return f.Check != check })
		switch {
		case check == store.CheckConstraints && f.unread != nil:
			return "", f.unread
		case len(flaws) == 0 && !known(*f):
			return "", storekit.Skip(unknown)
		}
		return storekit.Found(sound, flaws...)
	}}
}

// sharding finds out by what the collection is sharded.
func (x *exam) sharding(ctx context.Context) (string, error) {
	g := x.server.Load()
	if !g.router && g.service != cosmosRU {
		return "not behind a router, so not sharded", nil
	}
	is, err := x.layoutOf(ctx, g.service)
	_, unknown := errors.AsType[unverified](err)
	flaw, _ := errors.AsType[storekit.Flaw](err)
	if unknown && x.unsafe {
		flaw.Level, flaw.What = store.LevelWarn, flaw.What+"; unsafeUnverified accepts that"
		flaw.Remedy, _, _ = strings.Cut(flaw.Remedy, ", or accept")
		return storekit.Found("", flaw)
	}
	return map[layout]string{whole: "not sharded", byID: "sharded by _id", byType: "sharded by workerType"}[is], err
}
