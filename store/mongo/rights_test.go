package mongo

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
)

// noRight is how a server refuses an insert for lack of the right.
func noRight() bson.D {
	return commandError(codeUnauthorized, "Unauthorized", `not authorized on jobs to execute command { insert: "leases", documents: [ { _id: [] } ], ordered: true }`)
}

// privilege is an entry in the reply to connectionStatus.
func privilege(resource bson.D, actions ...string) bson.D {
	return bson.D{{Key: "resource", Value: resource}, {Key: "actions", Value: actions}}
}

func on(db, collection string) bson.D {
	return bson.D{{Key: "db", Value: db}, {Key: "collection", Value: collection}}
}

// status is a reply to connectionStatus.
func status(users int, privileges ...bson.D) bson.D {
	who, list := bson.A{}, bson.A{}
	for range users {
		who = append(who, bson.D{{Key: "user", Value: "u"}, {Key: "db", Value: "jobs"}})
	}
	for _, p := range privileges {
		list = append(list, p)
	}
	return bson.D{{Key: "authInfo", Value: bson.D{
		{Key: "authenticatedUsers", Value: who}, {Key: "authenticatedUserRoles", Value: bson.A{}}, {Key: "authenticatedUserPrivileges", Value: list},
	}}, {Key: "ok", Value: 1.0}}
}

// there lets a ledger believe that it has looked at its collection before.
func there(l *Ledger) *Ledger {
	l.fitness.found, l.fitness.since = true, l.fitness.clock.Now()
	return l
}

// A server would create it by the first insert, perhaps in a database that nobody has meant.
func TestACollectionThatIsNotThereIsMissingAtTheCheckOfRights(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"connectionStatus": status(0), "listCollections": cursorOf()})})
	err := f.open(Options{URI: "mongodb://" + f.addr + "/jobs?collection=leases"}).CheckRights(within(t, patience))
	documenttest.Says(t, "CheckRights()", err, store.ErrMissing, "there is no collection jobs.leases")
}

func TestAMissingRightIsFoundWithoutStoringAnything(t *testing.T) {
	t.Parallel()
	invalidID := writeError(53, "The '_id' value cannot be of type array")
	for name, c := range map[string]struct {
		status, insert bson.D
		asked          int
		want           error
	}{
		"insert on the collection":         {status: status(1, privilege(on("jobs", "leases"), "find", "insert", "remove")), insert: noRight()},
		"insert on the database":           {status: status(1, privilege(on("jobs", ""), "insert")), insert: noRight()},
		"insert on all databases":          {status: status(1, privilege(on("", ""), "insert")), insert: noRight()},
		"insert on all of the name":        {status: status(1, privilege(on("", "leases"), "insert")), insert: noRight()},
		"all on everything":                {status: status(1, privilege(bson.D{{Key: "anyResource", Value: true}}, "anyAction")), insert: noRight()},
		"no insert":                        {status: status(1, privilege(on("jobs", "leases"), "find", "remove")), insert: noRight(), asked: 1, want: store.ErrDenied},
		"insert elsewhere":                 {status: status(1, privilege(on("jobs", "others"), "insert"), privilege(on("other", ""), "insert"), privilege(bson.D{{Key: "cluster", Value: true}}, "insert")), insert: noRight(), asked: 1, want: store.ErrDenied},
		"no insert, and none is demanded":  {status: status(1), insert: invalidID, asked: 1},
		"nobody is logged in":              {status: status(0), insert: noRight()},
		"a server that lists no rights":    {status: bson.D{{Key: "ok", Value: 1.0}, {Key: "authInfo", Value: bson.D{{Key: "authenticatedUsers", Value: bson.A{bson.D{}}}}}}, insert: noRight()},
		"a server that says nothing":       {status: bson.D{{Key: "ok", Value: 1.0}}, insert: noRight()},
		"a server that doesn't know about": {status: commandError(codeCommandNotFound, "CommandNotFound", "no such command"), insert: noRight()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"connectionStatus": c.status, "insert": c.insert})})
			err := there(f.open(Options{URI: "mongodb://" + f.addr + "/jobs?collection=leases"})).CheckRights(within(t, patience))
			if !errors.Is(err, c.want) {
				t.Errorf("CheckRights() = %v, want %v", err, c.want)
			}
			if c.want != nil {
				documenttest.Says(t, "CheckRights()", err, c.want, "not authorized: insert on jobs.leases")
			}
			inserts := f.sent("insert")
			if len(inserts) != c.asked {
				t.Errorf("%d inserts were sent, want %d", len(inserts), c.asked)
			}
			for _, command := range inserts {
				if id := command.Lookup("documents", "0", "_id"); id.Type != bson.TypeArray {
					t.Errorf("an insert of %v was sent, want one that no server stores", command)
				}
			}
		})
	}
}

// A passing failure says nothing about rights. It doesn't show that they are granted, either.
func TestAReplyThatPassesLeavesRightsOpen(t *testing.T) {
	t.Parallel()
	stepping := commandError(11600, "InterruptedAtShutdown", "interrupted at shutdown")
	none := status(1, privilege(on("jobs", "leases"), "find"))
	for name, c := range map[string]struct {
		status, login, insert bson.D
		want                  error
		says                  string
	}{
		"a step-down":              {status: stepping, says: "no primary: an election?"},
		"a step-down at insert":    {status: none, insert: stepping, says: "no primary: an election?"},
		"an overload":              {status: commandError(codeRateLimited, "IngressRequestRateLimitExceeded", "too much"), want: store.ErrThrottled, says: "too much"},
		"a login that is denied":   {login: commandError(codeAuthenticationFailed, "AuthenticationFailed", "Authentication failed."), want: store.ErrDenied, says: "authentication failed"},
		"a login denied by Atlas":  {login: commandError(codeAtlasError, "AtlasError", "bad auth : Authentication failed."), want: store.ErrDenied, says: "authentication failed"},
		"Atlas, without the right": {status: none, insert: commandError(codeAtlasError, "AtlasError", "user is not allowed to do action [insert] on [jobs.leases]"), want: store.ErrDenied, says: "not authorized: insert on jobs.leases (user u, authenticated in jobs)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"connectionStatus": c.status, "saslStart": c.login, "insert": c.insert})})
			l := f.open(Options{URI: "mongodb://" + f.addr + "/jobs?collection=leases"})
			if c.login != nil {
				l = f.open(Options{URI: "mongodb://u:p@" + f.addr + "/jobs?collection=leases"})
				there(l)
			}
			l.login.known, l.login.user, l.login.source = true, "u", "jobs"
			err := l.CheckRights(within(t, patience))
			wantSentinel(t, "CheckRights()", err, c.want)
			documenttest.Says(t, "CheckRights()", err, c.want, c.says)
		})
	}
}

// The check sends an insert that fails, which would abort a transaction.
func TestRightsAreCheckedOutsideOfACallersTransaction(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"connectionStatus": status(1), "insert": writeError(53, "The '_id' value cannot be of type array")})})
	f.greeting = append(member(f.addr), bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(30)})
	client := dial(t, "mongodb://"+f.addr)
	s, err := client.StartSession()
	must(t, "StartSession()", err)
	must(t, "StartTransaction()", s.StartTransaction())
	must(t, "CheckRights()", there(f.open(Options{Client: client})).CheckRights(mongo.NewSessionContext(within(t, patience), s)))
	for _, name := range []string{"connectionStatus", "insert"} {
		sent := f.sent(name)
		documenttest.Equal(t, name+" sent", len(sent), 1)
		for _, command := range sent {
			if _, err := command.LookupErr("autocommit"); err == nil {
				t.Errorf("sent %v, want that it is in no transaction", command)
			}
		}
	}
}
