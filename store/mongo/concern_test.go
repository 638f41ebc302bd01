package mongo

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// exercise sends every operation, as to a ledger with records 1 to 3.
func exercise(t *testing.T, f *fakeServer, l *Ledger) {
	t.Helper()
	ctx := within(t, patience)
	_, get := l.Get(ctx, "job", 3)
	_, _, tail := l.Tail(ctx, "job", 2)
	n, trim := l.Trim(ctx, "job", 3)
	_, list := l.WorkerTypes(ctx)
	if err := errors.Join(l.Init(ctx), l.Append(ctx, storetest.Grant("job", 4)), get, tail, trim, list); err != nil || n != 1 {
		t.Errorf("the operations = %v, and Trim() = %d, want nil and 1", err, n)
	}
	if len(f.sent("insert")) == 0 || len(f.sent("delete")) == 0 || len(f.sent("find")) < 5 {
		t.Error("the fake server saw no insert, no delete or too few finds")
	}
}

func TestConcernsAreOursWhateverTheURIOrTheClientSays(t *testing.T) {
	t.Parallel()
	listing := func(name string, command bson.Raw) bson.D {
		switch name {
		case "listCollections":
			entry := collectionEntry("collection", bson.D{})
			entry[0].Value = "leases"
			return cursorOf(entry)
		case "find":
			if from, _ := command.Lookup("filter", fieldID, "$gte").StringValueOK(); from > store.Key("job", 3) {
				return cursorOf()
			}
			return cursorOf(bson.D{{Key: "_id", Value: store.Key("job", 3)}})
		}
		return nil
	}
	open := map[string]func(t *testing.T, f *fakeServer) *Ledger{
		"weak URI": func(_ *testing.T, f *fakeServer) *Ledger {
			return f.open(Options{URI: "mongodb://" + f.addr + "/jobs?collection=leases&w=0&journal=false&readConcernLevel=local&readPreference=secondary&wtimeoutMS=1"})
		},
		"weak client": func(t *testing.T, f *fakeServer) *Ledger {
			t.Helper()
			off := false
			client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + f.addr).SetDialer(network).
				SetWriteConcern(&writeconcern.WriteConcern{W: 1, Journal: &off}).
				SetReadConcern(readconcern.Available()).SetReadPreference(readpref.Nearest()).
				SetBSONOptions(&options.BSONOptions{OmitEmpty: true}))
			must(t, "Connect()", err)
			t.Cleanup(func() { _ = client.Disconnect(t.Context()) })
			return f.open(Options{Client: client, Database: "jobs", Collection: "leases"})
		},
	}
	for name, open := range open {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{reply: listing})
			exercise(t, f, open(t, f))
			for _, name := range []string{"insert", "delete"} {
				for _, c := range f.sent(name) {
					if c.Lookup(name).StringValue() != "leases" || c.Lookup("$db").StringValue() != "jobs" {
						t.Errorf("%s sent to %v of %v, want leases of jobs", name, c.Lookup(name), c.Lookup("$db"))
					}
					w, _ := c.Lookup("writeConcern", "w").StringValueOK()
					j, _ := c.Lookup("writeConcern", "j").BooleanOK()
					if _, err := c.LookupErr("writeConcern", "wtimeout"); w != "majority" || !j || err == nil {
						t.Errorf("%s has write concern %v, want majority with journal and no wtimeout", name, c.Lookup("writeConcern"))
					}
				}
			}
			for _, c := range f.sent("find") {
				// A server that gives up a find at its maxTimeMS, and says so in no error,
				// would make of a record that is there one that isn't.
				if _, err := c.LookupErr("maxTimeMS"); err == nil {
					t.Errorf("sent %s, want no maxTimeMS", c)
				}
				if level, _ := c.Lookup("readConcern", "level").StringValueOK(); level != "majority" {
					t.Errorf("find has read concern %v, want majority", c.Lookup("readConcern"))
				}
				if mode, ok := c.Lookup("$readPreference", "mode").StringValueOK(); ok && mode != "primary" && mode != "primaryPreferred" {
					t.Errorf("find has read preference %q, want primary", mode)
				}
			}
			insert := f.sent("insert")[0].Lookup("documents").Array().Index(0).Document()
			if _, err := insert.LookupErr("group"); err != nil {
				t.Errorf("inserted document %v: has no group, want it whatever the client's BSON options are", insert)
			}
		})
	}
}
