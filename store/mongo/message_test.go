package mongo

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// noise is what no message has: sessions, signatures, cluster times and the driver's
// numbers.
var noise = []string{"lsid", "UUID", "signature", "clusterTime", "execute command", "connection(", "topology", "ObjectID"}

func wantPlain(t *testing.T, what string, err error) {
	t.Helper()
	for _, word := range noise {
		if strings.Contains(err.Error(), word) {
			t.Errorf("%s = %v: has %q", what, err, word)
		}
	}
}

// The replies are recorded from MongoDB 5.0.7.
func TestARefusalNamesTheActionTheCollectionAndTheUser(t *testing.T) {
	t.Parallel()
	const tail = `lsid: { id: UUID("92def74c-31be-435e-a83d-4bb11473bafa") }, $clusterTime: { clusterTime: Timestamp(1795320185, 1), signature: { hash: BinData(0, AE20A8F3BAA2A7F6932D6E8B58F042A72AD1B844), keyId: 7710836979297943558 } }, $readPreference: { mode: "primaryPreferred" }, $db: "jobs" }`
	l := &login{known: true, user: "u", source: "jobs"}
	for said, want := range map[string]string{
		`not authorized on jobs to execute command { insert: "leases", documents: [ { _id: "w:1" } ], writeConcern: { w: "majority", j: true }, ` + tail: "not authorized: insert on jobs.leases (user u, authenticated in jobs)",
		`not authorized on jobs to execute command { find: "leases", limit: 1, ` + tail:                                                                  "not authorized: find on jobs.leases (user u, authenticated in jobs)",
		`not authorized on jobs to execute command { delete: "leases", deletes: [ { q: { _id: "w:1" }, limit: 0 } ], ` + tail:                            "not authorized: remove on jobs.leases (user u, authenticated in jobs)",
		`not authorized on jobs to execute command { create: "leases", ` + tail:                                                                          "not authorized: createCollection on jobs.leases (user u, authenticated in jobs)",
		`not authorized on jobs to execute command { aggregate: "leases", pipeline: [ { $collStats: {} } ], cursor: {}, ` + tail:                         "not authorized: collStats on jobs.leases (user u, authenticated in jobs)",
		`not authorized on jobs to execute command { listCollections: 1, filter: { name: "leases" }, ` + tail:                                            "not authorized: listCollections on jobs (user u, authenticated in jobs)",
		`command find requires authentication`:                       "not authorized: find requires authentication (user u, authenticated in jobs)",
		`something else`:                                             "something else (user u, authenticated in jobs)",
		`user is not allowed to do action [insert] on [jobs.leases]`: "not authorized: insert on jobs.leases (user u, authenticated in jobs)",
	} {
		documenttest.Equal(t, said, l.unauthorized(said), want)
	}
	for want, l := range map[string]*login{
		"not authorized: find requires authentication (the URI names no user)":      {known: true},
		"not authorized: find requires authentication (authenticated in $external)": {known: true, source: "$external"},
		"not authorized: find requires authentication":                              {},
	} {
		documenttest.Equal(t, "unauthorized()", l.unauthorized("command find requires authentication"), want)
	}
	f := serve(t, &fakeServer{reply: answers(map[string]bson.D{
		"insert": commandError(codeUnauthorized, "Unauthorized", `not authorized on jobs to execute command { insert: "leases", documents: [ { _id: "w:1" } ], `+tail),
	})})
	err := f.open(Options{URI: "mongodb://" + f.addr + "/jobs?collection=leases"}).Append(within(t, patience), storetest.Grant("job", 7))
	want := "mongo: append job:00000000000000000007: access denied: not authorized: insert on jobs.leases (the URI names no user)"
	if err == nil || err.Error() != want {
		t.Errorf("Append() = %v, want %q", err, want)
	} else if !strings.Contains(store.Detail(err), "keyId: 7710836979297943558") {
		t.Errorf("Detail() = %q, want all that the server said", store.Detail(err))
	}
}

// secondary is what a secondary of a replica set says of itself; its hosts are those of a set.
func secondary(set, me string, hosts ...string) bson.D {
	all := bson.A{}
	for _, h := range hosts {
		all = append(all, h)
	}
	return bson.D{
		{Key: "setName", Value: set},
		{Key: "setVersion", Value: int32(1)},
		{Key: "me", Value: me},
		{Key: "hosts", Value: all},
		{Key: "ismaster", Value: false},
		{Key: "isWritablePrimary", Value: false},
		{Key: "secondary", Value: true},
	}
}

// until asks for the time until the error says all of some words: the driver looks at the
// servers in the background.
func until(t *testing.T, l *Ledger, words ...string) error {
	t.Helper()
	for began := time.Now(); ; {
		_, err := l.Now(within(t, 300*time.Millisecond))
		said := err != nil
		for _, word := range words {
			said = said && strings.Contains(err.Error(), word)
		}
		if said {
			wantPlain(t, "Now()", err)
			return err
		}
		if time.Since(began) > patience {
			t.Fatalf("Now() = %v, want %q in it", err, words)
		}
	}
}

func TestWithoutAPrimaryTheErrorSaysWhichMembersAnswer(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	nobody := gone.Addr().String()
	must(t, "Close()", gone.Close())
	f := serve(t, &fakeServer{})
	f.greet(secondary("rs0", f.addr, f.addr, nobody))
	l := f.open(Options{URI: "mongodb://" + f.addr + "," + nobody + "/?replicaSet=rs0"})
	err = until(t, l, "no primary: an election? ", f.addr+" is a secondary", nobody+": connection refused")
	wantSentinel(t, "Now()", err, nil)
}

func TestAReplicaSetThatWasNotInitiatedIsSaidToBeThat(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.greet(bson.D{{Key: "ismaster", Value: false}, {Key: "isWritablePrimary", Value: false}, {Key: "isreplicaset", Value: true}})
	for options, want := range map[string]string{
		"?replicaSet=rs0":        "no primary: starting, or rs.initiate() wasn't called: " + f.addr + " is not in a replica set yet",
		"?directConnection=true": f.addr + " is not in a replica set yet: starting, or rs.initiate() wasn't called",
	} {
		wantSentinel(t, "Now()", until(t, f.open(Options{URI: "mongodb://" + f.addr + "/" + options}), want), nil)
	}
}

// As in containers whose members know each other by names that only they can resolve. The driver
// leaves the URI's names for those.
func TestANameOfAMemberThatIsNotTheURIsIsSaidToBeThat(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.greet(member("db-internal.invalid:27017"))
	err := until(t, f.open(Options{URI: "mongodb://" + f.addr + "/?replicaSet=rs0"}), "no server found: db-internal.invalid:27017: ", "(the name is from the replica set's configuration)")
	wantSentinel(t, "Now()", err, nil)
	l := open(t, Options{URI: "mongodb://127.0.0.1:1/?replicaSet=rs0"})
	if err := until(t, l, "no server found: 127.0.0.1:1: connection refused"); strings.Contains(err.Error(), "configuration") {
		t.Errorf("Now() = %v, want no word about a name that is the URI's", err)
	}
}

func TestAWrongNameOfTheReplicaSetIsSaidToBeThat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		greeting func(me string) bson.D
		direct   string
		others   string
		want     string
	}{
		"another set, one of two servers": {greeting: member, others: ",127.0.0.1:1", want: " is in the replica set rs0, and the URI says replicaSet=other; 127.0.0.1:1: connection refused"},
		"another set":                     {greeting: member, want: " is in the replica set rs0, and the URI says replicaSet=other"},
		"another set, by direct":          {greeting: member, direct: "&directConnection=true", want: " is in the replica set rs0, and the URI says replicaSet=other"},
		"no set":                          {greeting: func(string) bson.D { return nil }, want: " is in no replica set, and the URI says replicaSet=other: leave that out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{})
			f.greet(c.greeting(f.addr))
			l := f.open(Options{URI: "mongodb://" + f.addr + c.others + "/?replicaSet=other" + c.direct})
			wantSentinel(t, "Now()", until(t, l, f.addr+c.want), nil)
		})
	}
}

// A member is in no set before it is initiated. Later the member is down.
func TestAMemberThatIsDownIsNotSaidToBeInNoSet(t *testing.T) {
	t.Parallel()
	l := &login{known: true, replicaSet: "rs0", sets: map[string]string{"db1:27017": "", "db2:27017": "other"}}
	down := description.Server{Addr: "db1:27017", LastError: errors.New("refused")}
	for _, c := range []struct {
		servers []description.Server
		want    string
	}{
		{[]description.Server{down}, "db2:27017 is in the replica set other, and the URI says replicaSet=rs0; db1:27017: refused"},
		{[]description.Server{down, {Addr: "db2:27017", LastError: errors.New("lost")}}, "no server found: db1:27017: refused; db2:27017: lost"},
	} {
		got := l.noServer(description.Topology{Kind: description.TopologyKindReplicaSetNoPrimary, Servers: c.servers})
		documenttest.Equal(t, "noServer()", got, c.want)
	}
}

func TestAStepDownIsNoDenialAndSaidToBeThat(t *testing.T) {
	t.Parallel()
	stepping := commandError(10107, "NotWritablePrimary", "not primary")
	f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"saslStart": stepping, "insert": stepping, "listCollections": cursorOf()})})
	_, err := f.open(Options{URI: "mongodb://u:p@" + f.addr + "/jobs"}).Now(within(t, patience))
	wantSentinel(t, "Now()", err, nil) // The login met it: waiting helps.
	documenttest.Says(t, "Now()", err, nil, "no primary: an election? (NotWritablePrimary: not primary)")
	err = f.open(Options{}).Append(within(t, patience), storetest.Grant("job", 1))
	wantSentinel(t, "Append()", err, nil)
	documenttest.Says(t, "Append()", err, nil, "no primary: an election? (NotWritablePrimary: not primary)")
	wantPlain(t, "Append()", err)
}

// A mongos finds no primary of a shard. It says that of a command, and of a write.
func TestAShardWithoutAPrimaryIsSaidToBeThat(t *testing.T) {
	t.Parallel()
	const said = `Could not find host matching read preference { mode: "primary" } for set sh1`
	for name, reply := range map[string]bson.D{
		"a command": commandError(133, "FailedToSatisfyReadPreference", said),
		"a write":   writeError(133, said),
	} {
		f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"insert": reply})})
		err := f.open(Options{}).Append(within(t, patience), storetest.Grant("job", 1))
		wantSentinel(t, name, err, nil)
		documenttest.Says(t, name, err, nil, "no primary: an election? (", said)
	}
}

// Of operations that are denied the login at once, the driver tells some only that its pool was
// cleared.
func TestEveryOperationIsToldThatTheLoginWasDenied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply bson.D
		want  error
		says  string
	}{
		"a wrong password": {commandError(codeAuthenticationFailed, "AuthenticationFailed", "Authentication failed."), store.ErrDenied, "authentication failed (user u, authenticated in jobs)"},
		"of Atlas":         {commandError(codeAtlasError, "AtlasError", "bad auth : Authentication failed."), store.ErrDenied, "authentication failed (user u, authenticated in jobs): bad auth : Authentication failed"},
		"a full Atlas":     {commandError(codeAtlasError, "AtlasError", "you are over your space quota, using 513 MB of 512 MB"), nil, ""},
		"a step-down":      {commandError(10107, "NotWritablePrimary", "not primary"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"saslStart": c.reply})})
			l := f.open(Options{URI: "mongodb://u:p@" + f.addr + "/jobs"})
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 3 {
						_, err := l.Now(within(t, patience))
						wantSentinel(t, name, err, c.want)
						documenttest.Says(t, name, err, nil, c.says)
						wantPlain(t, name, err)
					}
				})
			}
			wg.Wait()
		})
	}
}

// The operator needs the user name, even if it looks like a password.
func TestALoginThatFailsNamesTheUserAndNeverAPassword(t *testing.T) {
	t.Parallel()
	for login, want := range map[string]string{
		"slotlease-rw:h4nterS2cret": "(user slotlease-rw, authenticated in jobs)",
		"jobrunner2:h4nterS2cret":   "(user jobrunner2, authenticated in jobs)",
		"svc.jobs%40x:h4nterS2cret": "(user svc.jobs@x, authenticated in jobs)",
		"h4nterS2cret:h4nterS2cret": "(user ***, authenticated in jobs)",
		"jobs:jobs":                 "(user ***, authenticated in jobs)",
	} {
		f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"saslStart": commandError(codeAuthenticationFailed, "AuthenticationFailed", "Authentication failed.")})})
		_, err := f.open(Options{URI: "mongodb://" + login + "@" + f.addr + "/jobs"}).Now(within(t, patience))
		documenttest.Says(t, "Now()", err, store.ErrDenied, want)
		wantNoSecret(t, "Now()", err.Error()+store.Detail(err), "h4nterS2cret")
	}
}

// These are messages of MongoDB, Atlas, FerretDB 1.24 and a proxy.
func TestWhatAServerSaysOfALoginIsSetApart(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"Authentication failed.":                              "",
		"bad auth : Authentication failed.":                   ": bad auth : Authentication failed",
		"Unsupported authentication mechanism \"PLAIN\".":     ": Unsupported authentication mechanism \"PLAIN\"",
		"Authentication failed: the directory doesn't answer": ": the directory doesn't answer",
	} {
		documenttest.Equal(t, said, (&login{known: true, user: "u", source: "jobs"}).loginFailed(said), "authentication failed (user u, authenticated in jobs)"+want)
	}
}

func TestALostConnectionIsNamedByItsServer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"connection(127.0.0.1:27201[-5]) incomplete read of message header: context deadline exceeded": "127.0.0.1:27201: incomplete read of message header: context deadline exceeded",
		"connection(db1:27017[-12]) socket was unexpectedly closed: EOF":                               "db1:27017: socket was unexpectedly closed: EOF",
		"connection() error occurred during connection handshake: EOF":                                 "error occurred during connection handshake: EOF",
		"nothing of that kind": "nothing of that kind",
	} {
		documenttest.Equal(t, text, (&login{}).message(errors.New(text)), want)
	}
}

func TestAtlasSaysManyThingsByOneCode(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]error{
		"bad auth : Authentication failed.":                          store.ErrDenied,
		"user is not allowed to do action [insert] on [jobs.leases]": store.ErrDenied,
		"you are over your space quota, using 513 MB of 512 MB":      nil,
	} {
		f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"insert": commandError(codeAtlasError, "AtlasError", said)})})
		wantSentinel(t, said, f.open(Options{}).Append(within(t, patience), storetest.Grant("job", 1)), want)
	}
}
