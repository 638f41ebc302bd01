package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestOperationsTakeNoPartInACallersTransaction(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.greet(append(member(f.addr), bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(30)}))
	client := dial(t, "mongodb://"+f.addr+"/?directConnection=true")
	l := f.open(Options{Client: client})
	session, err := client.StartSession()
	must(t, "StartSession()", err)
	defer session.EndSession(t.Context())
	must(t, "StartTransaction()", session.StartTransaction())
	ctx := mongo.NewSessionContext(within(t, patience), session)
	for name, call := range documenttest.Operations(l, storetest.Grant("job", 1)) {
		if err := call(ctx); err != nil && name != "Get" && name != "Init" {
			t.Errorf("%s() in a transaction = %v, want nil", name, err)
		}
	}
	for _, name := range []string{"insert", "find", "hello", "delete", "listCollections", "create"} {
		for _, c := range f.sent(name) {
			if _, err := c.LookupErr("autocommit"); err == nil {
				t.Errorf("sent %s, want it outside of the transaction", c)
			}
		}
	}
	insert := f.sent("insert")
	if len(insert) != 1 {
		t.Fatalf("inserts sent = %d, want 1", len(insert))
	}
	if w, _ := insert[0].Lookup("writeConcern", "w").StringValueOK(); w != "majority" {
		t.Errorf("sent %s, want write concern majority", insert[0])
	}
}
