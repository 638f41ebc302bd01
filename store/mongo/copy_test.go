package mongo

import (
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestACopyOfASecondaryIsReadWithoutAPrimary(t *testing.T) {
	t.Parallel()
	written := time.Date(2026, 11, 22, 3, 22, 59, 0, time.UTC)
	asked := written.Add(42 * time.Second)
	record := storetest.Grant("job", 3)
	doc, err := bson.Marshal(encode(record))
	must(t, "Marshal()", err)
	var stored bson.D
	must(t, "Unmarshal()", bson.Unmarshal(doc, &stored))
	f := serve(t, &fakeServer{now: func() time.Time { return asked }, reply: func(name string, _ bson.Raw) bson.D {
		if name == "find" {
			return cursorOf(stored)
		}
		return nil
	}})
	f.greet(append(secondary("rs0", f.addr, f.addr, "127.0.0.1:1"), bson.E{Key: "lastWrite", Value: bson.D{
		{Key: "lastWriteDate", Value: bson.NewDateTimeFromTime(written.Add(time.Second))},
		{Key: "majorityWriteDate", Value: bson.NewDateTimeFromTime(written)},
	}}))
	l := f.open(Options{URI: "mongodb://" + f.addr + "/jobs?collection=leases&replicaSet=rs0"})
	c, err := l.OpenCopy(within(t, patience))
	must(t, "OpenCopy()", err)
	t.Cleanup(func() { must(t, "Close()", c.Close(t.Context())) })
	server, asOf, err := c.AsOf(within(t, patience))
	must(t, "AsOf()", err)
	if server != f.addr+", a secondary" || !asOf.Equal(written) {
		t.Errorf("AsOf() = %q, %v, want the secondary and %v", server, asOf, written)
	}
	records, _, err := c.Tail(within(t, patience), "job", 1)
	must(t, "Tail()", err)
	if len(records) != 1 || records[0] != record {
		t.Errorf("Tail() = %v, want %v", records, record)
	}
	s, err := c.Now(within(t, patience))
	must(t, "Now()", err)
	if !s.Time.Equal(asked) || s.Server != f.addr {
		t.Errorf("Now() = %+v, want %v of the secondary", s, asked)
	}
	for _, command := range f.sent("find") {
		if mode, _ := command.Lookup("$readPreference", "mode").StringValueOK(); mode != "primaryPreferred" {
			t.Errorf("find with read preference %q: a secondary answers with primaryPreferred only", mode)
		}
		if level, _ := command.Lookup("readConcern", "level").StringValueOK(); level != "majority" {
			t.Errorf("find with read concern %q, want majority: what may be rolled back isn't shown", level)
		}
	}
	err = c.Append(within(t, patience), record)
	wantSentinel(t, "Append()", err, store.ErrDenied)
	wantErr(t, "Append()", err, store.ErrNotStored)
	_, err = c.Trim(within(t, patience), "job", 3)
	wantSentinel(t, "Trim()", err, store.ErrDenied)
	wantSentinel(t, "Init()", c.Init(within(t, patience)), store.ErrDenied)
	roster := c.(store.Roster)
	wantSentinel(t, "Attend()", roster.Attend(within(t, patience), []store.Presence{storetest.Presence("job", "a")}), store.ErrDenied)
	wantSentinel(t, "Leave()", roster.Leave(within(t, patience), "job", nil), store.ErrDenied)
	for _, name := range []string{"insert", "delete", "create", "update"} {
		if n := len(f.sent(name)); n != 0 {
			t.Errorf("a copy sent %d of %s", n, name)
		}
	}
}

func TestNoCopyWithoutAReplicaSet(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	_, err := f.open(Options{}).OpenCopy(within(t, patience))
	documenttest.Says(t, "OpenCopy() of a standalone server", err, nil, f.addr+" is no member of a replica set")
	f.greet(router())
	_, err = f.open(Options{}).OpenCopy(within(t, patience))
	documenttest.Says(t, "OpenCopy() of a mongos", err, nil, "is no member of a replica set")
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + f.addr))
	must(t, "Connect()", err)
	t.Cleanup(func() { _ = client.Disconnect(t.Context()) })
	_, err = f.open(Options{Client: client}).OpenCopy(within(t, patience))
	documenttest.Says(t, "OpenCopy() with a caller's client", err, nil, "Options.URI only")
}

// What a URI says about the login and the encryption holds for the connection to one member.
func TestACopyConnectsAsTheLedgerDoes(t *testing.T) {
	t.Parallel()
	o := options.Client().ApplyURI("mongodb://u:p@db1,db2/jobs?replicaSet=rs0&tls=true&tlsInsecure=true&connectTimeoutMS=7000&compressors=zlib")
	d := directly(o)("db2:27017")
	must(t, "Validate()", d.Validate())
	if d.Auth == nil || d.Auth.AuthSource != "jobs" || d.Auth.Password != "p" || d.TLSConfig == nil || !d.TLSConfig.InsecureSkipVerify || *d.ConnectTimeout != 7*time.Second || !*d.Direct || !slices.Equal(d.Hosts, []string{"db2:27017"}) || !slices.Equal(d.Compressors, []string{"zlib"}) {
		t.Errorf("directly() = %+v, want db2 with the login and the encryption of %+v", d, o)
	}
}
