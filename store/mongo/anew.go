package mongo

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store/storekit"
)

// anewAfter is how long a client is kept that knows no primary.
const anewAfter = 30 * time.Second

// anew makes a client of our own anew, if it has known no primary of its replica set for a while. The
// driver never asks a server again that was in no replica set, or in another one than expected, unless
// another member names it: a set of one that is started alone for its maintenance would be lost until
// this program is started again. Nor does it go to the primary of a set that was initiated anew over
// its data, since that counts its elections from one.
//
// It does so at once if the file of tlsCAFile has other authorities than the client knows: the driver keeps those.
//
// https://github.com/mongodb/specifications/blob/master/source/server-discovery-and-monitoring/server-discovery-and-monitoring.md#topologytype-table
type anew struct {
	options *options.ClientOptions // nil with the caller's client, and for a copy

	mu   sync.Mutex
	at   time.Time // the newest time; zero before the first
	over bool      // closed
}

var errAnew = errors.New("the client was just made anew")

// seek makes the client anew if an error says that it finds no server. The error of an operation
// that was under way by the earlier client isn't that of a ledger that was closed.
func (l *Ledger) seek(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, mongo.ErrClientDisconnected) && l.own && !l.runner.Closed() {
		return errAnew
	}
	selection := isSelection(err)
	if !selection && storekit.OfCertificate(err, tryTrust) == "" || l.anew.options == nil {
		return err
	}
	n, now := &l.anew, l.fitness.clock.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	before := l.login.options.Load()
	trusts := l.login.encryption.renewed(before)
	o := trusts
	if o == nil && selection && now.Sub(n.at) >= anewAfter {
		o = l.login.again(before, now)
	}
	if o == nil || n.over {
		return err
	}
	n.at = now
	was := l.to()
	client, failed := mongo.Connect(o)
	if failed != nil {
		return err
	}
	if trusts != nil {
		l.login.options.Store(trusts)
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

// again are options for a client that goes on where that of others left off, if it lost the primary a while ago; nil if not, or
// if no set is known. The URI may name servers that have left the set long ago, and without the name of the set, one that
// was started alone would do.
func (l *login) again(o *options.ClientOptions, now time.Time) *options.ClientOptions {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set == "" || l.lost.IsZero() || now.Sub(l.lost) < anewAfter {
		return nil
	}
	again := *o
	again.SRVMaxHosts = nil // It bounds how many of the URI's are used, and isn't taken with the name of a set.
	return again.SetReplicaSet(l.set).SetHosts(slices.Clone(l.members))
}
