package mongo

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
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
			until(t, l)
			f.greet(member(f.addr))
			for began := time.Now(); ; {
				l.anew.mu.Lock()
				l.anew.at = time.Time{} // As after anewAfter.
				l.anew.mu.Unlock()
				if _, err := l.Now(within(t, 300*time.Millisecond)); err == nil {
					break
				} else if time.Since(began) > patience {
					t.Fatalf("Now() = %v, want it to find the server again", err)
				}
			}
		})
	}
}

// A set that was initiated anew over its data counts its elections from one again, and the driver takes
// its primary for one of long ago.
func TestThePrimaryOfASetThatWasInitiatedAnewIsFound(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	elected := func(term byte) bson.D {
		return append(member(f.addr), bson.E{Key: "electionId", Value: bson.ObjectID{0: 0x7f, 11: term}})
	}
	f.greet(elected(20))
	l := f.open(Options{URI: "mongodb://" + f.addr + "/?replicaSet=rs0&heartbeatFrequencyMS=500"})
	_, err := l.Now(within(t, patience))
	must(t, "Now()", err)
	f.greet(bson.D{{Key: "ismaster", Value: false}, {Key: "isWritablePrimary", Value: false}, {Key: "isreplicaset", Value: true}})
	until(t, l, "no primary: starting, or rs.initiate()")
	f.greet(elected(1))
	for began := time.Now(); ; {
		if _, err := l.Now(within(t, 300*time.Millisecond)); err == nil {
			break
		} else if time.Since(began) > patience {
			t.Fatalf("Now() = %v, want it to find the server again", err)
		}
	}
}
