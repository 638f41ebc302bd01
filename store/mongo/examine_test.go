package mongo

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// allChecks is how many checks there are.
const allChecks = 15

// plain is what a server says of a collection that is fit.
func plain() map[string]bson.D {
	return map[string]bson.D{
		"listCollections": cursorOf(collectionEntry("collection", bson.D{})),
		"listIndexes":     cursorOf(bson.D{{Key: "name", Value: "_id_"}}),
		"find":            cursorOf(),
		"aggregate":       cursorOf(),
		"buildInfo":       {{Key: "ok", Value: 1.0}, {Key: "version", Value: "8.0.1"}},
	}
}

func TestAFaultOfACollectionIsFoundAndHidesNoOther(t *testing.T) {
	t.Parallel()
	denied := commandError(codeUnauthorized, "Unauthorized", "not authorized on WorkerProcess to execute command { delete: 1 }")
	ttl := bson.D{{Key: "name", Value: "old"}, {Key: "expireAfterSeconds", Value: int32(60)}}
	unique := bson.D{{Key: "name", Value: "once"}, {Key: "unique", Value: true}}
	rules := bson.D{{Key: "validator", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$type", Value: "int"}}}}}}
	sharded := bson.D{{Key: "ok", Value: 1.0}, {Key: "sharded", Value: true}}
	byClaim := cursorOf(bson.D{{Key: "_id", Value: "WorkerProcess.WorkerLeases"}, {Key: "key", Value: bson.D{{Key: "claim", Value: 1}}}})
	reader := status(1, privilege(on("WorkerProcess", ""), "find"))
	for name, c := range map[string]struct {
		replies map[string]bson.D // in place of plain's
		hello   bson.D
		options Options
		uri     string
		check   string
		level   store.Level
		says    string
		also    []string
	}{
		"both":                      {replies: map[string]bson.D{"listIndexes": cursorOf(unique, ttl)}, check: store.CheckExpiry, level: store.LevelFail, says: `the TTL index "old", which would delete the newest record → drop it`, also: []string{store.CheckConstraints}},
		"a validator":               {replies: map[string]bson.D{"listCollections": cursorOf(collectionEntry("collection", rules))}, check: CheckCollection, level: store.LevelFail, says: "given a validator, which may keep records out → remove it with collMod"},
		"no collection":             {replies: map[string]bson.D{"listCollections": cursorOf()}, check: store.CheckLedger, level: store.LevelFail, says: "there is no collection WorkerProcess.WorkerLeases → leasectl init", also: []string{CheckCollection, store.CheckExpiry, store.CheckConstraints}},
		"a shard key":               {hello: router(), replies: map[string]bson.D{"collStats": sharded, "find": byClaim}, check: CheckSharding, level: store.LevelFail, says: "is sharded by {claim}, and _id is unique only in each shard → reshard it by workerType or by _id alone", also: []string{store.CheckServerClocks}},
		"an unknown shard key":      {hello: router(), replies: map[string]bson.D{"collStats": denied, "find": denied}, check: CheckSharding, level: store.LevelFail, says: "can't find out whether WorkerProcess.WorkerLeases is sharded → grant the action collStats on it, or accept the danger", also: []string{store.CheckServerClocks, store.CheckRead, store.CheckRoster}},
		"an accepted shard key":     {hello: router(), options: Options{UnsafeUnverified: true}, replies: map[string]bson.D{"collStats": denied, "find": denied}, check: CheckSharding, level: store.LevelWarn, says: "unsafeUnverified accepts that → grant the action collStats on it\n", also: []string{store.CheckServerClocks, store.CheckRead, store.CheckRoster}},
		"a user that may only read": {replies: map[string]bson.D{"connectionStatus": reader, "insert": denied, "delete": denied, "update": denied}, check: store.CheckAppend, level: store.LevelFail, says: "access denied", also: []string{store.CheckTrim, store.CheckRoster}},
		"a user that may not trim":  {replies: map[string]bson.D{"delete": denied}, check: store.CheckTrim, level: store.LevelWarn, says: "→ grant remove on WorkerProcess.WorkerLeases, or the role readWrite on WorkerProcess", also: []string{store.CheckRoster}},
		"no change stream":          {replies: map[string]bson.D{"aggregate": denied}, check: CheckHints, level: store.LevelWarn, says: "workers look for a released lease when its part ends, which takes seconds → grant changeStream and find on WorkerProcess.WorkerLeases, or the role read on WorkerProcess"},
		"a server without streams":  {replies: map[string]bson.D{"aggregate": commandError(40573, "Location40573", "The $changeStream stage is only supported on replica sets")}, check: CheckHints, level: store.LevelOK, says: "there are no change streams here"},
		"a URI with w=0":            {uri: "?w=0", check: CheckConcerns, level: store.LevelOK, says: "a write waits for a majority and its journal"},
		"a secondary":               {hello: bson.D{{Key: "setName", Value: "rs0"}, {Key: "isWritablePrimary", Value: false}, {Key: "ismaster", Value: false}, {Key: "secondary", Value: true}, {Key: "me", Value: "m1:1"}}, uri: "?directConnection=true", check: CheckReplicaSet, level: store.LevelFail, says: "is not the primary → connect to the replica set, without directConnection", also: []string{store.CheckServerClocks}},
		"nothing wrong":             {check: store.CheckConnection, level: store.LevelOK, says: "MongoDB 8.0.1, answered in "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replies := plain()
			for command, reply := range c.replies {
				replies[command] = reply
			}
			f := serve(t, &fakeServer{reply: answers(replies), greeting: c.hello})
			c.options.URI = "mongodb://" + f.addr + "/" + c.uri
			found, err := f.open(c.options).Examine(within(t, patience))
			must(t, "Examine()", err)
			documenttest.Finds(t, found, c.check, c.level, c.says)
			documenttest.FindsNoMore(t, found, append(c.also, c.check)...)
			documenttest.Equal(t, "checks", len(found), allChecks)
			for _, command := range f.sent("insert") {
				if id := command.Lookup("documents", "0", "_id"); id.Type != bson.TypeArray {
					t.Errorf("Examine() sent %v, want nothing that is stored", command)
				}
			}
		})
	}
}

func TestAServerThatDoesNotAnswerIsFoundInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, &fakeServer{})
		f.slow.Store(int64(time.Hour))
		began := time.Now()
		found, err := f.open(Options{}).Examine(within(t, 2*time.Second))
		must(t, "Examine()", err)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Examine() took %v, want an end within its context", took)
		}
		documenttest.Finds(t, found, store.CheckConnection, store.LevelFail, "")
		documenttest.Equal(t, "checks", len(found), allChecks)
	})
}

func TestHowAConnectionIsSecuredIsFound(t *testing.T) {
	t.Parallel()
	for uri, c := range map[string]struct {
		level store.Level
		says  string
	}{
		"mongodb://127.0.0.1:1/":                            {store.LevelOK, "not encrypted, to this machine alone"},
		"mongodb://localhost,[::1]:27017/":                  {store.LevelOK, "not encrypted, to this machine alone"},
		"mongodb://localhost,db2.test/":                     {store.LevelWarn, "not encrypted: who sees or changes the traffic"},
		"mongodb://db1.test/?tls=true":                      {store.LevelOK, "encrypted, and the server's certificate is verified"},
		"mongodb://db1.test/?tls=true&tlsInsecure=true":     {store.LevelWarn, "the server's certificate isn't verified"},
		"mongodb://db1.test/?ssl=true&sslInsecure=true":     {store.LevelWarn, "take that out of the URI"},
		"mongodb://user:c4n4ry@db1.test/?tlsInsecure=false": {store.LevelWarn, "add tls=true"},
	} {
		l := open(t, Options{URI: uri})
		found, err := l.Examine(within(t, 20*time.Millisecond))
		must(t, "Examine()", err)
		documenttest.Finds(t, found, store.CheckTLS, c.level, c.says)
	}
}

func TestMembersThatAreDownOrHaveAWrongClockAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		off   []time.Duration
		mute  bool
		check string
		level store.Level
		says  string
	}{
		"all well":      {off: []time.Duration{0, 0, 0}, check: CheckReplicaSet, level: store.LevelOK, says: "all of the 3 electable members answer"},
		"one is down":   {off: []time.Duration{0, 0}, mute: true, check: CheckReplicaSet, level: store.LevelWarn, says: "no clock can be asked for of "},
		"a wrong clock": {off: []time.Duration{0, 3 * time.Second}, check: store.CheckServerClocks, level: store.LevelWarn, says: " ahead of that of "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := serveClocks(t, c.off...)
			if c.mute {
				s.elect(0, append(s.addresses(), network.Address())...)
			}
			found, err := s.open(Options{}).Examine(within(t, patience))
			must(t, "Examine()", err)
			documenttest.Finds(t, found, c.check, c.level, c.says)
		})
	}
}

// The peer shows what a real server answers to commands that match nothing.
func TestAServersFaultsAreFound(t *testing.T) {
	t.Parallel()
	uri := mongopeer.URI(t)
	client := dial(t, uri)
	database := database(t, client)
	l := open(t, Options{URI: uri, Database: database, Clock: clock.NewMock()}) // Each check has as long as it takes.
	found, err := l.Examine(within(t, patience))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckLedger, store.LevelFail, "there is no collection "+database+".WorkerLeases")
	documenttest.FindsNoMore(t, found, store.CheckLedger, CheckCollection, store.CheckExpiry, store.CheckConstraints)
	must(t, "Init()", l.Init(within(t, patience)))
	found, err = l.Examine(within(t, patience))
	must(t, "Examine()", err)
	documenttest.FindsNoMore(t, found)
	documenttest.Equal(t, "checks", len(found), allChecks)
	types, err := l.WorkerTypes(within(t, patience))
	documenttest.Equal(t, "what Examine() stored", fmt.Sprint(types, err), "[] <nil>")
	err = client.Database(database).RunCommand(within(t, patience), bson.D{{Key: "createIndexes", Value: DefaultCollection}, {Key: "indexes", Value: bson.A{
		bson.D{{Key: "key", Value: bson.D{{Key: "claim", Value: 1}}}, {Key: "name", Value: "once"}, {Key: "unique", Value: true}},
	}}}).Err()
	must(t, "createIndexes", err)
	found, err = l.Examine(within(t, patience))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckConstraints, store.LevelFail, `the unique index "once"`)
	documenttest.FindsNoMore(t, found, store.CheckConstraints)
}
