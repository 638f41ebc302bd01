package mongo

import (
	"slices"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// ghost is what a server says that is in no replica set yet.
var ghost = bson.D{{Key: "ismaster", Value: false}, {Key: "isWritablePrimary", Value: false}, {Key: "isreplicaset", Value: true}}

// The driver forgets servers, and a worker would be without a store until it is started again.
func TestServersThatTheDriverLeftAreFoundAgain(t *testing.T) {
	t.Parallel()
	elected := func(me string, term byte) bson.D {
		return append(member(me), bson.E{Key: "electionId", Value: bson.ObjectID{0: 0x7f, 11: term}})
	}
	for name, c := range map[string]struct {
		uri  string // after the host
		away bson.D
		back byte // the term of its election then; the one before was 20
	}{
		"the only one is started alone":  {"/?replicaSet=rs0&", bson.D{}, 21},
		"without the name of the set":    {"/?", bson.D{}, 21},
		"beside one that doesn't answer": {",127.0.0.1:1/?replicaSet=rs0&", bson.D{}, 21},
		"a set is initiated anew":        {"/?replicaSet=rs0&", ghost, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{})
			f.greet(elected(f.addr, 20))
			mock := clock.NewMock()
			l := f.open(Options{URI: "mongodb://" + f.addr + c.uri + "heartbeatFrequencyMS=500", Clock: mock, ServerSkew: time.Second})
			_, err := l.Now(within(t, patience))
			must(t, "Now()", err)
			f.greet(c.away)
			_ = until(t, l)
			// The rest of the set never sees what a member stores that was started alone.
			for first := l.to(); l.to() == first; mock.Add(anewAfter) {
				_ = until(t, l)
			}
			for range 3 {
				if err := l.Append(within(t, 500*time.Millisecond), storetest.Grant("job", 1)); err == nil {
					t.Fatal("Append() = nil on a server that isn't in the set, want an error")
				}
			}
			if sent := f.sent("insert"); len(sent) > 0 {
				t.Errorf("a server that isn't in the set got %v, want nothing", sent)
			}
			f.greet(elected(f.addr, c.back))
			suites.Eventually(t, "Now() finds the server again", func() bool {
				_, err := l.Now(within(t, time.Second))
				mock.Add(anewAfter)
				return err == nil
			})
		})
	}
}

// A URI may name servers that have left the set since. With srvMaxHosts=2, it can't name a set. The members have told it.
func TestAClientThatIsMadeAnewGoesToTheSetThatWasKnown(t *testing.T) {
	t.Parallel()
	o := options.Client().SetHosts([]string{"a", "b"}).SetSRVMaxHosts(2)
	lost := time.UnixMilli(0)
	l := loginOf(o, lost)
	if l.again(o, lost.Add(anewAfter)) != nil {
		t.Error("a client is made anew although no set is known")
	}
	l.set, l.members = "rs0", []string{"c:27017"}
	if l.again(o, lost.Add(anewAfter-1)) != nil {
		t.Error("a client is made anew in an election")
	}
	again := l.again(o, lost.Add(anewAfter))
	must(t, "Validate()", again.Validate())
	if !slices.Equal(again.Hosts, l.members) || *again.ReplicaSet != "rs0" || o.ReplicaSet != nil || len(o.Hosts) != 2 {
		t.Errorf("options for %q of %v, and %v before, want those for the set that is known", *again.ReplicaSet, again.Hosts, o.Hosts)
	}
}
