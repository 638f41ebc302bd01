package mongo

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	driveraddress "go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// anewAfter is how long a client is kept that has left out servers and reaches no other.
const anewAfter = 30 * time.Second

// anew makes a client of our own anew, if it sees no server of any use although there is one. The
// driver never asks a server again that was in no replica set, or in another one than expected, unless
// another member names it: a set of one that is started alone for its maintenance would be lost until
// this program is started again. Nor does it go to the primary of a set that was initiated anew over
// its data, since that counts its elections from one.
// https://github.com/mongodb/specifications/blob/master/source/server-discovery-and-monitoring/server-discovery-and-monitoring.md#topologytype-table
type anew struct {
	options *options.ClientOptions // nil with the caller's client, and for a copy

	mu   sync.Mutex
	at   time.Time // the newest time; zero before the first
	over bool      // closed
}

var errAnew = errors.New("the client was just made anew")

// seek makes the client anew if an error says that it has lost its servers. The error of an operation
// that was under way by the earlier client isn't that of a ledger that was closed.
func (l *Ledger) seek(err error) error {
	if errors.Is(err, mongo.ErrClientDisconnected) && l.own && !l.runner.Closed() {
		return errAnew
	}
	e, selecting := errors.AsType[topology.ServerSelectionError](err)
	if !selecting || l.anew.options == nil || !l.login.leftOut(e.Desc) {
		return err
	}
	n := &l.anew
	n.mu.Lock()
	defer n.mu.Unlock()
	now := l.fitness.clock.Now()
	if n.over || !n.at.IsZero() && now.Sub(n.at) < anewAfter {
		return err
	}
	n.at = now
	was := l.to()
	client, failed := mongo.Connect(l.login.again(n.options))
	if failed != nil {
		return err
	}
	l.bind(client, was.db.Name(), was.coll.Name())
	go func() { _ = was.client.Disconnect(context.Background()) }()
	return err
}

// disconnect closes the client, and has none be made after it.
func (l *Ledger) disconnect(ctx context.Context) error {
	l.anew.mu.Lock()
	l.anew.over = true
	l.anew.mu.Unlock()
	return l.to().client.Disconnect(ctx)
}

// leftOut reports that the driver knows no primary, and either a server of the set says that it is the
// primary, which the driver takes for one of long ago; or one has answered that the driver asks no more,
// and none of those that it asks is of any use. If no set is known, leftOut reports false: a new client
// might take a server that was started alone for the ledger.
func (l *login) leftOut(t description.Topology) bool {
	useful := false
	for _, s := range t.Servers {
		if s.Kind == description.ServerKindRSPrimary {
			return false
		}
		_, answered := l.state(s)
		useful = useful || answered && s.Kind != description.ServerKindRSGhost
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	set, members := l.found()
	if set == "" {
		return false
	}
	for server := range l.sets {
		address := driveraddress.Address(server).String()
		asked := slices.ContainsFunc(t.Servers, func(s description.Server) bool { return s.Addr.String() == address })
		ours := slices.ContainsFunc(members, func(m string) bool { return driveraddress.Address(m).String() == address })
		if ours && (l.primaries[server] || !asked && !useful) {
			return true
		}
	}
	return false
}

// found are the name and the servers of the replica set, by its newest primary, else by the URI. It
// needs the lock.
func (l *login) found() (set string, members []string) {
	if l.set == "" {
		return l.replicaSet, l.hosts
	}
	return l.set, l.members
}

// again are options for a client that goes on where that of others left off. The URI may name servers
// that have left the set long ago, and without the name of the set, one that was started alone would do.
func (l *login) again(o *options.ClientOptions) *options.ClientOptions {
	l.mu.Lock()
	defer l.mu.Unlock()
	set, members := l.found()
	again := *o
	again.SRVMaxHosts = nil // It bounds how many of the URI's are used, and isn't taken with the name of a set.
	return again.SetReplicaSet(set).SetHosts(slices.Clone(members))
}
