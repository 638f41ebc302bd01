package mongo

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// service is what speaks the protocol, as far as that makes a difference.
type service int

const (
	// genuine is MongoDB, or what can't be told from it.
	genuine service = iota
	// cosmosRU is Azure Cosmos DB for MongoDB (RU). It calls itself the replica set
	// globaldb, and its collections may be sharded.
	cosmosRU
	// gateway is that of DocumentDB, so also of Azure DocumentDB. It calls itself a
	// router, names its topology in the field internal of hello, and has localTime as a
	// number (documentdb/documentdb, pg_documentdb_gw/…/processor/ismaster.rs).
	gateway
	// ferretDB is FerretDB 2. Several of them may serve one PostgreSQL.
	ferretDB
)

// serviceOf tells a service by its hello.
func serviceOf(hello bson.Raw, router bool) service {
	if name, _ := hello.Lookup("setName").StringValueOK(); name == "globaldb" {
		return cosmosRU
	}
	if _, err := hello.LookupErr("internal"); err == nil && router {
		return gateway
	}
	return genuine
}

// lookAtService refuses a service whose clock nothing is known about.
func (l *Ledger) lookAtService(ctx context.Context, g greeting) (service, error) {
	is, err := l.findService(ctx, g)
	if err != nil {
		return is, err
	}
	return is, l.knowsSkew(is)
}

// findService completes what hello says by buildInfo, which needs no rights.
func (l *Ledger) findService(ctx context.Context, g greeting) (service, error) {
	is := g.service
	if is == genuine && !g.router {
		info, err := l.to().client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Raw()
		if tolerate(err) != nil {
			return is, err
		}
		// FerretDB 1 has the field ferretdbVersion. It is not the same: with SQLite, it is alone.
		if _, missing := info.LookupErr("ferretdb"); err == nil && missing == nil {
			is = ferretDB
		}
	}
	return is, nil
}

// knowsSkew refuses a service that answers with the clock of whichever of its front ends
// was asked, unless ServerSkew says how far those may be apart.
func (l *Ledger) knowsSkew(is service) error {
	answers := ""
	switch {
	case l.skew != 0:
	case is == ferretDB:
		answers = "FerretDB answers with the clock of the proxy"
	case is == gateway:
		answers = "DocumentDB answers with the clock of the gateway"
	}
	if answers == "" {
		return nil
	}
	return storekit.Flaw{
		Check: store.CheckServerClocks, What: answers + " that was asked",
		Remedy: "say how far those may differ by serverSkew=… in the URI (Options.ServerSkew), or serverSkew=1ns if there is only one",
	}.Refuse()
}

// lookAtCosmosKey reads the shard key by a command of Cosmos DB for MongoDB (RU); see
// https://learn.microsoft.com/azure/cosmos-db/mongodb/custom-commands. _id is unique only
// for each value of it.
func (l *Ledger) lookAtCosmosKey(ctx context.Context) (layout, error) {
	raw, err := l.to().db.RunCommand(ctx, bson.D{{Key: "customAction", Value: "GetCollection"}, {Key: "collection", Value: l.to().coll.Name()}}).Raw()
	switch {
	case hasCode(err, codeNamespaceNotFound):
		return whole, nil
	case tolerate(err) != nil:
		return whole, err
	case err != nil:
		return unknown(whole, fmt.Sprintf("can't find out how %s is sharded: customAction GetCollection failed", l.namespace()), "")
	}
	return l.keyed(raw.Lookup("shardKeyDefinition"))
}

// lookAtListedKey reads the shard key as DocumentDB lists it, in info.shardKey. _id is
// unique only for each value of it.
func (l *Ledger) lookAtListedKey(ctx context.Context) (layout, error) {
	ctx, cancel := withoutDate(ctx)
	defer cancel()
	found, err := listing(ctx)(l.to().db.ListCollections(ctx, bson.D{{Key: "name", Value: l.to().coll.Name()}}))
	switch {
	case tolerate(err) != nil || err == nil && len(found) == 0:
		return whole, err
	case err != nil:
		return unknown(whole, fmt.Sprintf("can't find out how %s is sharded", l.namespace()), "grant the action listCollections")
	}
	return l.keyed(found[0].Lookup("info", "shardKey"))
}

// keyed is the layout under a shard key that is missing or null in a collection that
// isn't sharded.
func (l *Ledger) keyed(key bson.RawValue) (layout, error) {
	if missing(key) {
		return whole, nil
	}
	fields, _ := key.DocumentOK()
	if is := layoutBy(fields); is != unfit {
		return is, nil
	}
	return unfit, l.unfitKey("is sharded by", fields)
}

// unverified is the refusal of what can't be found out, unless the caller accepts that.
type unverified struct{ error }

func (e unverified) Unwrap() error { return e.error }

// unknown says why the layout can't be found out, and what is assumed if that is accepted.
func unknown(assumed layout, why, remedy string) (layout, error) {
	if remedy != "" {
		remedy += ", or "
	}
	return assumed, unverified{storekit.Flaw{
		Check: CheckSharding, What: why, Remedy: remedy + "accept the danger with unsafeUnverified=true in the URI (Options.UnsafeUnverified)",
	}.Refuse()}
}
