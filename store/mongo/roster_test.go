package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// onLeases opens a ledger whose collection is jobs.leases, on a server that answers some commands in its own way.
func onLeases(t *testing.T, replies map[string]bson.D) (*fakeServer, *Ledger) {
	t.Helper()
	f := serve(t, &fakeServer{reply: answers(replies)})
	return f, f.open(Options{URI: "mongodb://" + f.addr + "/jobs?collection=leases"})
}

func TestAttendSendsDocumentsWithDatesAndLooksAtNothingElse(t *testing.T) {
	t.Parallel()
	f, l := onLeases(t, nil)
	p := store.Presence{WorkerType: "job", ID: "a", InstanceID: "w", Phase: store.PhaseHolder, Labels: map[string]string{"$set": "a.b"}, Seen: storetest.Presence("job", "a").Seen, Score: new(0.0)}
	must(t, "Attend()", l.Attend(within(t, patience), []store.Presence{p}))
	sent := f.sent("update")
	documenttest.Equal(t, "updates sent", len(sent), 1)
	documenttest.Equal(t, "the collection", sent[0].Lookup("update").StringValue(), "leases_roster")
	documenttest.Equal(t, "the write concern", sent[0].Lookup("writeConcern").String(), `{"w": {"$numberInt":"1"}}`)
	documenttest.Equal(t, "the update", sent[0].Lookup("updates").String(),
		`[{"q": {"_id": "job:a"},"u": {"_id": "job:a","workerType": "job","id": "a","instanceId": "w","labels": [{"name": "$set","value": "a.b"}],"phase": "holder",`+
			`"score": {"$numberDouble":"0.0"},"seen": {"$date":{"$numberLong":"1772409601234"}}},"upsert": true}]`)
	for _, name := range []string{"listCollections", "listIndexes", "insert", "create"} {
		documenttest.Equal(t, name+" sent", len(f.sent(name)), 0)
	}
}

func TestWithoutTheRightToWriteTheRosterTheErrorNamesIt(t *testing.T) {
	t.Parallel()
	denied := func(command string) bson.D {
		return commandError(codeUnauthorized, "Unauthorized", "not authorized on jobs to execute command { "+command+`: "leases_roster", ordered: false }`)
	}
	_, l := onLeases(t, map[string]bson.D{"update": denied("update"), "delete": denied("delete"), "find": denied("find"), "create": denied("create")})
	ctx := within(t, patience)
	attended := l.Attend(ctx, []store.Presence{storetest.Presence("job", "a")})
	left := l.Leave(ctx, "job", []string{"a"})
	_, listed := l.Presences(ctx, "")
	for action, err := range map[string]error{"update": attended, "remove": left, "find": listed} {
		wantSentinel(t, action, err, store.ErrDenied)
		documenttest.Says(t, action, err, store.ErrDenied, "not authorized: "+action+" on jobs.leases_roster")
	}
	must(t, "CheckRights()", there(l).CheckRights(ctx))
	must(t, "createRoster()", l.createRoster(ctx)) // Init is that of the ledger.
}

// Two clients that attend one presence at a time: servers before MongoDB 4.2 let one of them know.
func TestAPresenceThatAnotherInsertedMeanwhileIsReplaced(t *testing.T) {
	t.Parallel()
	var f *fakeServer
	f = serve(t, &fakeServer{reply: func(name string, _ bson.Raw) bson.D {
		if name == "update" && len(f.sent("update")) < attendTries {
			return writeError(codeDuplicate, "E11000 duplicate key error")
		}
		return nil
	}})
	l := f.open(Options{})
	must(t, "Attend()", l.Attend(within(t, patience), []store.Presence{storetest.Presence("job", "a")}))
	documenttest.Equal(t, "updates sent", len(f.sent("update")), attendTries)
}
