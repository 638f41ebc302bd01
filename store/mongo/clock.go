package mongo

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/position"
	"github.com/slotlease/slotlease/store/storekit"
)

// defaultSkew is how far the clocks of servers that can't be asked are assumed to differ.
const defaultSkew = 100 * time.Millisecond

// serverKey is the context key under which an operation keeps a place for the
// address of the server that it was sent to.
type serverKey struct{}

// commandMonitor is the driver's. The driver hands it the context of the operation, on the goroutine of the operation.
func commandMonitor() *event.CommandMonitor {
	return &event.CommandMonitor{Started: noteServer}
}

func noteServer(ctx context.Context, e *event.CommandStartedEvent) {
	if to, ok := ctx.Value(serverKey{}).(*string); ok {
		*to = e.ConnectionID
		if i := strings.LastIndex(e.ConnectionID, "[-"); i > 0 {
			*to = e.ConnectionID[:i]
		}
	}
}

// greeting is a server's description of itself.
type greeting struct {
	// server names it: the address that the driver used and, if different, the
	// server's own name. So a change at a proxy or load balancer shows, too.
	server string
	// addr is that address; empty if the client isn't ours.
	addr     string
	writable bool
	router   bool
	member   bool
	service  service
	time     time.Time
	// Of a member of a replica set: its own name, the name of the set, and the members that can
	// be elected: hello's hosts are "neither hidden, passive, nor arbiters"
	// (https://www.mongodb.com/docs/manual/reference/command/hello/).
	me, set string
	hosts   []string
	// named: the process says which one it is (topologyVersion, since MongoDB 4.4). Services
	// that speak MongoDB's protocol don't, and behind one address they may have many clocks.
	named bool
	// clock is the member's name and process: names may be those of another machine by now.
	clock string
	// wrote is its newest operation, by its term and time (lastWrite.opTime).
	wrote position.Position
}

// direct reports that the driver uses the server that the URI names, whatever that is.
func (l *Ledger) direct() bool {
	o := l.anew.options
	return o != nil && o.Direct != nil && *o.Direct
}

// hello asks the primary, or the router, for its name and time.
func (l *Ledger) hello(ctx context.Context) (greeting, error) {
	return l.helloOf(ctx, readpref.Primary())
}

// secondTry is after how long a member is asked again that was the primary until a moment ago. The driver looks at the members again
// half a second after its last look at the soonest. A server that reports changes (streaming) has shown its step-down by then. Where
// the driver polls instead, it may look only after heartbeatFrequencyMS (10 s): then the same member answers, and the caller gets
// its error.
const secondTry = 600 * time.Millisecond

// another waits for the driver to learn that another member has become the primary, as at an ordered step-down, and reports that it is
// to be asked once more. If the driver knows it by then, the operation succeeds as if there had been no step-down.
//
// What one caller has waited for, others needn't that have queued for a look at the collection meanwhile: during an election they would
// wait one after the other.
//
// It doesn't wait if the deadline leaves less time for the question than for the wait: the error that there is no primary says more
// than one of a deadline. Nor does it wait without a deadline: a clock that stands would never end the wait.
func (l *Ledger) another(ctx context.Context, g greeting) bool {
	if !g.member || l.direct() {
		return false
	}
	// The deadline may be by another clock. In the worst case the wait ends with the context.
	deadline, ok := callers(ctx).Deadline()
	if !ok || deadline.Sub(l.fitness.clock.Now()) < 2*secondTry {
		return false
	}
	if l.fitness.hasWaited(ctx) {
		return true
	}
	timer := l.fitness.clock.Timer(secondTry)
	defer timer.Stop()
	select {
	case <-timer.C:
		l.fitness.wait()
		return true
	case <-ctx.Done():
		return false
	}
}

// helloOf is hello to a server by a read preference.
func (l *Ledger) helloOf(ctx context.Context, which *readpref.ReadPref) (greeting, error) {
	var addr string
	raw, err := l.to().client.Database("admin").RunCommand(
		context.WithValue(ctx, serverKey{}, &addr),
		bson.D{{Key: "hello", Value: 1}},
		options.RunCmd().SetReadPreference(which),
	).Raw()
	if err != nil {
		return greeting{}, err
	}
	return greet(addr, raw)
}

// greet reads the reply to hello. addr is empty if the client isn't ours and has
// no monitor of ours.
func greet(addr string, raw bson.Raw) (greeting, error) {
	text := func(name string) string { s, _ := raw.Lookup(name).StringValueOK(); return s }
	ms, ok := raw.Lookup("localTime").DateTimeOK()
	if !ok { // DocumentDB sends a number.
		ms, ok = raw.Lookup("localTime").Int64OK()
	}
	if !ok {
		return greeting{}, errors.New("the server's hello has no localTime")
	}
	g := greeting{
		server: addr,
		addr:   addr,
		router: text("msg") == "isdbgrid",
		member: text("setName") != "",
		time:   store.FromMillis(ms),
		me:     text("me"),
		set:    text("setName"),
	}
	_, err := raw.LookupErr("topologyVersion")
	g.named = err == nil
	if process, ok := raw.Lookup("topologyVersion", "processId").ObjectIDOK(); ok && g.me != "" {
		g.clock = g.me + "/" + process.Hex()
	}
	term, _ := raw.Lookup("lastWrite", "opTime", "t").AsInt64OK()
	if sec, n, ok := raw.Lookup("lastWrite", "opTime", "ts").TimestampOK(); ok {
		g.wrote = position.Position{term, int64(sec)<<32 | int64(n)}
	}
	hosts, _ := raw.Lookup("hosts").ArrayOK()
	values, _ := hosts.Values()
	for _, v := range values {
		if host, ok := v.StringValueOK(); ok {
			g.hosts = append(g.hosts, host)
		}
	}
	g.service = serviceOf(raw, g.router)
	g.writable, _ = raw.Lookup("isWritablePrimary").BooleanOK()
	switch me := g.me; {
	case me == "" && addr == "":
		// A standalone server doesn't name itself. It is the only one.
		g.server = "mongodb"
	case addr == "":
		g.server = me
	case me != "" && me != addr:
		g.server = addr + " (" + me + ")"
	}
	return g, nil
}

// Now reads the primary's clock with one command, and at the same time those of the other members
// that can be elected, if they were not read within the last 2 s. Stamps have milliseconds.
// Stamp.Skew is how far the members' clocks are apart: see the package's documentation. With
// mongos, whose own clock isn't the store's, it asks a shard: that which holds the
// collection or, if the collection is sharded, the primary shard of the database. Until
// the collection exists, the error is store.ErrMissing.
//
// Stamp.History is the collection's UUID, as of the last look at it: once an hour, and after a change stream that says that
// it was dropped. Its suffix changes when the primary of a replica set is behind what an earlier primary has shown
// (lastWrite.opTime), for example because it was restored from a snapshot.
func (l *Ledger) Now(ctx context.Context) (store.Stamp, error) {
	s, err := run(ctx, l, "now", "", l.now)
	if s.History = l.fitness.history(); s.History != "" {
		s.History += l.wrote.Name()
	}
	return s, err
}

func (l *Ledger) now(ctx context.Context) (store.Stamp, error) {
	if l.fitness.behindRouter() {
		return l.shardNow(ctx)
	}
	// A clock that was set, or a suspend of the machine, shows once, and so does a primary that has stepped down.
	stepped := false
	for range 3 {
		l.members.askAhead()
		sent := l.members.local()
		g, err := l.hello(ctx)
		received := l.members.local()
		switch {
		case err != nil:
			return store.Stamp{}, err
		case g.service == gateway:
			// Its $collStats has no clock.
			return l.stamp(g.time, g.server, true), l.knowsSkew(gateway)
		case g.router:
			return l.shardNow(ctx)
		case !g.writable:
			if stepped || !l.another(ctx, g) {
				return store.Stamp{}, errors.New(l.notPrimary(g).Error())
			}
			stepped = true
			continue
		}
		l.wrote.Follow(g.wrote, time.Unix(0, int64(sent)), time.Unix(0, int64(received)))
		s := l.stamp(g.time, g.server, g.member)
		s.Clock = g.clock
		if !g.member || l.members.dial == nil {
			return s, nil
		}
		var ok bool
		if s.Skew, ok, err = l.members.apart(ctx, g, sent, received); ok || err != nil {
			return s, err
		}
	}
	return store.Stamp{}, errors.New("the clocks of the replica set's members change while they are read")
}

// notPrimary is what is wrong with a server that isn't the primary although the driver took it for that.
func (l *Ledger) notPrimary(g greeting) storekit.Flaw {
	f := storekit.Flaw{Check: CheckReplicaSet, What: g.server + " is not the primary", Remedy: "wait for the election of another"}
	switch {
	case !g.member:
		f.What, f.Remedy = g.server+" is not in a replica set yet", "wait until it has started, or call rs.initiate()"
	case l.direct():
		f.Remedy = "connect to the replica set, without directConnection"
	}
	return f
}

// stamp is a reading of a server that is alone, or one of several.
func (l *Ledger) stamp(t time.Time, server string, several bool) store.Stamp {
	s := store.Stamp{Time: t, Granularity: time.Millisecond, Server: server, Skew: l.skew}
	if several {
		s.Skew = cmp.Or(l.skew, defaultSkew)
	}
	return s
}

// namespace is the full name of the collection.
func (l *Ledger) namespace() string { return l.to().db.Name() + "." + l.to().coll.Name() }
