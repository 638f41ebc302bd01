package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/internal/suites"
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
	const by = " (user u, authenticated in jobs)"
	l := &login{known: true, user: "u", source: "jobs"}
	for said, want := range map[string]string{
		`not authorized on jobs to execute command { insert: "leases", documents: [ { _id: "w:1" } ], writeConcern: { w: "majority", j: true }, ` + tail: "not authorized: insert on jobs.leases" + by,
		`not authorized on jobs to execute command { find: "leases", limit: 1, ` + tail:                                                                  "not authorized: find on jobs.leases" + by,
		`not authorized on jobs to execute command { delete: "leases", deletes: [ { q: { _id: "w:1" }, limit: 0 } ], ` + tail:                            "not authorized: remove on jobs.leases" + by,
		`not authorized on jobs to execute command { create: "leases", ` + tail:                                                                          "not authorized: createCollection on jobs.leases" + by,
		`not authorized on jobs to execute command { aggregate: "leases", pipeline: [ { $collStats: {} } ], cursor: {}, ` + tail:                         "not authorized: collStats on jobs.leases" + by,
		`not authorized on jobs to execute command { listCollections: 1, filter: { name: "leases" }, ` + tail:                                            "not authorized: listCollections on jobs" + by,
		`command find requires authentication`:                       "command find requires authentication" + by,
		`user is not allowed to do action [insert] on [jobs.leases]`: "not authorized: insert on jobs.leases" + by,
	} {
		documenttest.Equal(t, said, l.unauthorized(said), want)
	}
	for want, l := range map[string]*login{
		" (the URI names no user)":      {known: true},
		" (authenticated in $external)": {known: true, source: "$external"},
		"":                              {},
	} {
		documenttest.Equal(t, "who()", l.who(), want)
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
func until(t *testing.T, l *Ledger, words ...string) (err error) {
	t.Helper()
	suites.Eventually(t, fmt.Sprintf("Now() says %q", words), func() bool {
		_, err = l.Now(within(t, 300*time.Millisecond))
		return err != nil && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(err.Error(), word) })
	})
	wantPlain(t, "Now()", err)
	return err
}

// The driver's own picture of servers that are of no use.
func TestWithoutAServerTheErrorSaysWhatEachAnswers(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1"
	for name, c := range map[string]struct {
		greeting func(me string) bson.D
		hosts    string // of the URI, after the server
		uri      string
		want     func(me string) []string
		try      string
	}{
		"an election": {
			func(me string) bson.D { return secondary("rs0", me, me, nobody) }, "," + nobody, "replicaSet=rs0",
			func(me string) []string {
				return []string{"no primary: an election? ", me + " is a secondary", nobody + ": connection refused"}
			}, tryElection,
		},
		"a set that wasn't initiated": {
			func(string) bson.D { return ghost }, "", "replicaSet=rs0",
			func(me string) []string {
				return []string{"no primary: starting, or rs.initiate() wasn't called: " + me + " is not in a replica set yet"}
			}, tryInitiate,
		},
		// As in containers whose members know each other by names that only they can resolve.
		"a name that isn't the URI's": {
			func(string) bson.D { return member("db-internal.invalid:27017") }, "", "replicaSet=rs0",
			func(string) []string {
				return []string{"no server found: db-internal.invalid:27017: ", "(the name is from the replica set's configuration)"}
			}, tryNames,
		},
		"another set": {
			member, "", "replicaSet=other",
			func(me string) []string { return []string{me + ": not in the replica set other, as the URI says"} }, trySet,
		},
		"another set, and one that is down": {
			member, "," + nobody, "replicaSet=other",
			func(me string) []string {
				return []string{me + ": not in the replica set other, as the URI says; " + nobody + ": connection refused"}
			}, trySet,
		},
		"no set": {
			func(string) bson.D { return nil }, "", "replicaSet=other",
			func(me string) []string { return []string{me + ": not in the replica set other"} }, trySet,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{})
			f.greet(c.greeting(f.addr))
			err := until(t, f.open(Options{URI: "mongodb://" + f.addr + c.hosts + "/?" + c.uri}), c.want(f.addr)...)
			wantSentinel(t, "Now()", err, nil)
			documenttest.Equal(t, "Remedy()", store.Remedy(err), c.try)
		})
	}
}

func TestAPictureOfTheDriversIsUnderstood(t *testing.T) {
	t.Parallel()
	at := func(servers ...string) string {
		return "context deadline exceeded, current topology: { Type: ReplicaSetNoPrimary, Servers: [" + strings.Join(servers, "") + "] }"
	}
	const (
		odd  = "{ Addr: db1:27017, Type: Unknown, Last error: dial tcp 10.0.0.1:27017: connect: odd { } [x] }, "
		mute = "{ Addr: db2:27017, Type: Unknown }, "
	)
	for name, c := range map[string]struct {
		hosts     []string
		picture   string
		want, try string
	}{
		"an arbiter answers":       {nil, at("{ Addr: db1:27017, Type: RSArbiter, Average RTT: 123 }, ", mute), "no primary: an election? db1:27017 is an arbiter; db2:27017: no answer yet", tryElection},
		"one isn't in the set":     {nil, at("{ Addr: db1:27017, Type: RSGhost, Tag sets: [], Average RTT: 1 }, ", mute), "no primary: an election? db1:27017 is not in a replica set yet; db2:27017: no answer yet", tryElection},
		"nobody answers":           {nil, at(odd, mute), "no server found: db1:27017: odd { } [x]; db2:27017: no answer yet", tryServer},
		"the URI leaves out 27017": {[]string{"DB1", "db2"}, at(odd, mute), "no server found: db1:27017: odd { } [x]; db2:27017: no answer yet", tryServer},
		"nothing":                  {nil, at(), "no server found", tryServer},
	} {
		why, try := (&login{hosts: c.hosts}).noServer(c.picture)
		documenttest.Equal(t, name, why, c.want)
		documenttest.Equal(t, name, try, c.try)
	}
	for name, c := range map[string]struct {
		err  error
		srv  bool
		want string
	}{
		"nobody answers":         {&net.OpError{Op: "dial", Err: errors.New("refused")}, false, tryServer},
		"the connection broke":   {mongo.CommandError{Labels: []string{"NetworkError"}}, false, tryServer},
		"the time was up":        {mongo.CommandError{Wrapped: context.DeadlineExceeded}, false, tryServer},
		"there is no SRV record": {&net.DNSError{Err: "no such host", IsNotFound: true}, true, trySRV},
		"the server said no":     {mongo.CommandError{Code: 10107, Message: "not primary"}, false, ""},
		"it is none of a set":    {errors.New("h:27017 is no member of a replica set"), false, ""},
	} {
		documenttest.Equal(t, name, (&login{srv: c.srv}).remedy(c.err), c.want)
	}
}

// A mongos finds no primary of a shard. It says that of a command, and of a write.
func TestAnElectionIsNoDenialAndSaidToBeThat(t *testing.T) {
	t.Parallel()
	const said = `Could not find host matching read preference { mode: "primary" } for set sh1`
	for name, c := range map[string]struct{ login, insert bson.D }{
		"the login": {login: commandError(10107, "NotWritablePrimary", "not primary")},
		"a command": {insert: commandError(10107, "NotWritablePrimary", "not primary")},
		"a shard":   {insert: commandError(133, "FailedToSatisfyReadPreference", said)},
		"a write":   {insert: writeError(133, said)},
	} {
		f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"saslStart": c.login, "insert": c.insert})})
		o := Options{}
		if c.login != nil {
			o.URI = "mongodb://u:p@" + f.addr + "/jobs"
		}
		err := f.open(o).Append(within(t, patience), storetest.Grant("job", 1))
		wantSentinel(t, name, err, nil) // Waiting helps.
		documenttest.Says(t, name, err, nil, "no primary: an election? (")
		wantPlain(t, name, err)
	}
}

// Of operations that are denied the login at once, the driver tells some only that its pool was
// cleared. The operator needs the user name, even if it looks like a password.
func TestEveryOperationIsToldThatTheLoginWasDenied(t *testing.T) {
	t.Parallel()
	denied := commandError(codeAuthenticationFailed, "AuthenticationFailed", "Authentication failed.")
	for name, c := range map[string]struct {
		login string
		reply bson.D
		want  error
		says  string
	}{
		"a wrong password":            {"u:h4nterS2cret", denied, store.ErrDenied, "authentication failed (user u, authenticated in jobs)"},
		"a user like a password":      {"jobrunner2:h4nterS2cret", denied, store.ErrDenied, "(user jobrunner2, authenticated in jobs)"},
		"an encoded user":             {"svc.jobs%40x:h4nterS2cret", denied, store.ErrDenied, "(user svc.jobs@x, authenticated in jobs)"},
		"a user that is the password": {"h4nterS2cret:h4nterS2cret", denied, store.ErrDenied, "(user ***, authenticated in jobs)"},
		"a short one":                 {"jobs:jobs", denied, store.ErrDenied, "(user ***, authenticated in jobs)"},
		"of Atlas":                    {"u:h4nterS2cret", commandError(codeAtlasError, "AtlasError", "bad auth : Authentication failed."), store.ErrDenied, "authentication failed (user u, authenticated in jobs): bad auth : Authentication failed"},
		"a proxy":                     {"u:h4nterS2cret", commandError(codeAuthenticationFailed, "AuthenticationFailed", "Authentication failed: the directory doesn't answer"), store.ErrDenied, ": the directory doesn't answer"},
		"a full Atlas":                {"u:h4nterS2cret", commandError(codeAtlasError, "AtlasError", "you are over your space quota, using 513 MB of 512 MB"), nil, ""},
		"a step-down":                 {"u:h4nterS2cret", commandError(10107, "NotWritablePrimary", "not primary"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"saslStart": c.reply})})
			l := f.open(Options{URI: "mongodb://" + c.login + "@" + f.addr + "/jobs"})
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 3 {
						_, err := l.Now(within(t, patience))
						wantSentinel(t, name, err, c.want)
						documenttest.Says(t, name, err, nil, c.says)
						wantPlain(t, name, err)
						wantNoSecret(t, "Now()", err.Error()+store.Detail(err), "h4nterS2cret")
					}
				})
			}
			wg.Wait()
			if c.want != nil {
				wantErr(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 7)), store.ErrNotStored)
			}
		})
	}
}

func TestALostConnectionIsNamedByItsServer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"connection(127.0.0.1:27201[-5]) incomplete read of message header: context deadline exceeded": "127.0.0.1:27201: incomplete read of message header: context deadline exceeded",
		"connection() error occurred during connection handshake: EOF":                                 "error occurred during connection handshake: EOF",
		"nothing of that kind": "nothing of that kind",
	} {
		documenttest.Equal(t, text, (&login{}).message(errors.New(text)), want)
	}
}
