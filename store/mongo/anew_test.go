package mongo

import (
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/testutil/storetest"
)

// The driver forgets the only member of a set that is started alone for a while, and a worker would
// be without a store until it is started again.
func TestAServerThatWasInNoReplicaSetForAWhileIsFoundAgain(t *testing.T) {
	t.Parallel()
	for name, uri := range map[string]string{
		"the only one":                   "/?replicaSet=rs0",
		"without the name of the set":    "/",
		"beside one that doesn't answer": ",127.0.0.1:1/?replicaSet=rs0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{})
			f.greet(member(f.addr))
			l := f.open(Options{URI: "mongodb://" + f.addr + uri + map[bool]string{true: "&", false: "?"}[uri != "/"] + "heartbeatFrequencyMS=500"})
			_, err := l.Now(within(t, patience))
			must(t, "Now()", err)
			f.greet(bson.D{})
			_ = until(t, l)
			f.greet(member(f.addr))
			for began := time.Now(); ; {
				l.anew.allow()
				if _, err := l.Now(within(t, 300*time.Millisecond)); err == nil {
					break
				} else if time.Since(began) > patience {
					t.Fatalf("Now() = %v, want it to find the server again", err)
				}
			}
		})
	}
}

// allow is what the end of anewAfter does.
func (n *anew) allow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at = time.Time{}
}

// The rest of the set never sees what a member stores that was started alone.
func TestAMemberThatWasStartedAloneIsNoLedger(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.greet(member(f.addr))
	l := f.open(Options{URI: "mongodb://" + f.addr + "/?heartbeatFrequencyMS=500"})
	_, err := l.Now(within(t, patience))
	must(t, "Now()", err)
	f.greet(bson.D{})
	_ = until(t, l, "no server found")
	for first, began := l.to(), time.Now(); l.to() == first; {
		l.anew.allow()
		_ = until(t, l)
		if time.Since(began) > patience {
			t.Fatal("the client was not made anew")
		}
	}
	for range 3 {
		if err := l.Append(within(t, 500*time.Millisecond), storetest.Grant("job", 1)); err == nil {
			t.Fatal("Append() = nil on a member that was started alone, want an error")
		}
	}
	if sent := f.sent("insert"); len(sent) > 0 {
		t.Errorf("a member that was started alone got %v, want nothing", sent)
	}
}

// A URI may name servers that have left the set since, and an outage of the others leads to no way back.
func TestServersThatTheURIDoesNotNameAreFoundAgain(t *testing.T) {
	t.Parallel()
	named, other := serve(t, &fakeServer{}), serve(t, &fakeServer{})
	noMember := bson.D{{Key: "ismaster", Value: false}, {Key: "isWritablePrimary", Value: false}, {Key: "isreplicaset", Value: true}}
	named.greet(secondary("rs0", named.addr, named.addr, other.addr))
	other.greet(append(member(other.addr), bson.E{Key: "hosts", Value: bson.A{named.addr, other.addr}}))
	l := named.open(Options{URI: "mongodb://" + named.addr + "/?replicaSet=rs0&heartbeatFrequencyMS=500"})
	_, err := l.Now(within(t, patience))
	must(t, "Now()", err)
	other.greet(member(other.addr))
	named.greet(noMember)
	for began := time.Now(); len(l.login.newest()) > 1; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("the driver knows %v, want %s alone", l.login.newest(), other.addr)
		}
	}
	other.greet(noMember)
	_ = until(t, l, "no primary: starting", other.addr)
	l.anew.allow()
	_ = until(t, l, "no primary: starting")
	other.greet(member(other.addr))
	_, err = l.Now(within(t, patience))
	must(t, "Now() after the outage", err)
}

// With srvMaxHosts=2, the URI can't name a set. The members have told it since.
func TestTheOptionsOfAClientThatIsMadeAnewAreValid(t *testing.T) {
	t.Parallel()
	o := options.Client().SetHosts([]string{"a", "b"}).SetSRVMaxHosts(2)
	l := loginOf(o)
	l.set, l.members = "rs0", []string{"c:27017"}
	again := l.again(o)
	must(t, "Validate()", again.Validate())
	if !slices.Equal(again.Hosts, l.members) || *again.ReplicaSet != "rs0" || o.ReplicaSet != nil || len(o.Hosts) != 2 {
		t.Errorf("options for %q of %v, and %v before, want those for the set that is known", *again.ReplicaSet, again.Hosts, o.Hosts)
	}
}

// newest are the members that the driver knew newest.
func (l *login) newest() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.members
}

// A set that was initiated anew over its data counts its elections from one again, and the driver takes
// its primary for one of long ago, whatever the other members say.
func TestThePrimaryOfASetThatWasInitiatedAnewIsFound(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"the only member": 0, "beside a secondary": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{})
			hosts := bson.A{f.addr}
			for range others {
				other := serve(t, &fakeServer{})
				hosts = append(hosts, other.addr)
				other.greet(secondary("rs0", other.addr, f.addr, other.addr))
			}
			elected := func(term byte) bson.D {
				return append(member(f.addr), bson.E{Key: "hosts", Value: hosts}, bson.E{Key: "electionId", Value: bson.ObjectID{0: 0x7f, 11: term}})
			}
			f.greet(elected(20))
			l := f.open(Options{URI: "mongodb://" + f.addr + "/?replicaSet=rs0&heartbeatFrequencyMS=500"})
			_, err := l.Now(within(t, patience))
			must(t, "Now()", err)
			f.greet(bson.D{{Key: "ismaster", Value: false}, {Key: "isWritablePrimary", Value: false}, {Key: "isreplicaset", Value: true}})
			_ = until(t, l, "no primary:", "not in a replica set yet")
			f.greet(elected(1))
			for began := time.Now(); ; {
				if _, err := l.Now(within(t, 300*time.Millisecond)); err == nil {
					break
				} else if time.Since(began) > patience {
					t.Fatalf("Now() = %v, want it to find the server again", err)
				}
			}
		})
	}
}
