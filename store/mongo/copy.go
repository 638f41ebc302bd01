package mongo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// memberCopy is a ledger as one member of the replica set has it.
type memberCopy struct {
	*Ledger

	server string
}

// OpenCopy connects to a secondary, or to the primary if no secondary answers. What it shows is
// what a majority has, as far as that member knows. It needs Options.URI, and a replica set:
// a mongos doesn't say which member answers.
func (l *Ledger) OpenCopy(ctx context.Context) (store.Copy, error) {
	if err := l.open(ctx, "open copy", ""); err != nil {
		return nil, err
	}
	c, err := l.openCopy(ctx)
	if err != nil {
		return nil, l.failed(ctx, "open copy", "", err)
	}
	return c, nil
}

func (l *Ledger) openCopy(ctx context.Context) (*memberCopy, error) {
	if l.login.direct == nil {
		return nil, errors.New("a copy can be opened with Options.URI only")
	}
	g, err := l.helloOf(ctx, readpref.SecondaryPreferred())
	switch {
	case err != nil:
		return nil, err
	case !g.member:
		return nil, fmt.Errorf("%s is no member of a replica set, so it has no secondaries: name the members of the replica set in the URI", g.addr)
	}
	o := l.login.direct(g.addr)
	hangUp := endable(o)
	client, err := mongo.Connect(o)
	if err != nil {
		return nil, err
	}
	c := &memberCopy{&Ledger{
		own: true, copied: true, label: g.addr, login: l.login, hangUp: hangUp, skew: l.skew, secrets: l.secrets,
		fitness: fitness{clock: l.fitness.clock, gate: make(chan struct{}, 1)},
		members: newMembers(l.fitness.clock, l.members.clocks.Assumed, nil),
	}, g.addr}
	c.newRunner()
	c.bind(client, l.to().db.Name(), l.to().coll.Name())
	return c, nil
}

// AsOf asks the member up to when it has what a majority had:
// https://www.mongodb.com/docs/manual/reference/command/hello/#mongodb-data-hello.lastWrite.majorityWriteDate
//
// That is the time of a write. A primary without any makes one each 10 s:
// https://www.mongodb.com/docs/manual/core/replica-set-oplog/
func (c *memberCopy) AsOf(ctx context.Context) (server string, asOf time.Time, err error) {
	if err := c.open(ctx, "as of", ""); err != nil {
		return "", time.Time{}, err
	}
	raw, err := c.to().client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Raw()
	if err != nil {
		return "", time.Time{}, c.failed(ctx, "as of", "", err)
	}
	ms, ok := raw.Lookup("lastWrite", "majorityWriteDate").DateTimeOK()
	if !ok {
		return "", time.Time{}, c.failed(ctx, "as of", "", errors.New("the server's hello has no lastWrite.majorityWriteDate"))
	}
	role := "a secondary"
	if primary, _ := raw.Lookup("isWritablePrimary").BooleanOK(); primary {
		role = "the primary"
	}
	return c.server + ", " + role, store.FromMillis(ms), nil
}

// errCopy is the error of what would change a copy.
var errCopy = storekit.NotStored(fmt.Errorf("%w: a copy of a ledger is only read", store.ErrDenied))

// changing are the operations that change a ledger.
var changing = []string{"append", "trim", "init", "check rights", "attend", "leave"}

// directly makes options to connect to one server alone, with the login and the encryption of
// others. They aren't a copy of them: a URI with SRV records can't be direct.
func directly(o *options.ClientOptions) func(addr string) *options.ClientOptions {
	return func(addr string) *options.ClientOptions {
		d := options.Client().SetHosts([]string{addr}).SetDirect(true).SetMonitor(commandMonitor())
		d.AppName, d.Auth, d.TLSConfig = o.AppName, o.Auth, o.TLSConfig
		d.DisableOCSPEndpointCheck, d.DisableCertificateRevocationCheck = o.DisableOCSPEndpointCheck, o.DisableCertificateRevocationCheck
		d.Compressors, d.ConnectTimeout, d.ServerSelectionTimeout = o.Compressors, o.ConnectTimeout, o.ServerSelectionTimeout
		return d
	}
}
