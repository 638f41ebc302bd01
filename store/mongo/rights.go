package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// CheckRights returns store.ErrDenied if the user has no right to insert, store.ErrMissing if there is no such collection,
// and else nil, also if the server doesn't tell. Any other error leaves it open, as that of
// a server which steps down.
// It stores nothing. It costs one command, and a second one if the right seems to be missing.
//
// connectionStatus needs no rights. It lists the user's even on a server that demands none of
// anybody. So what it lacks is asked for: an insert of a document that no server stores,
// because its _id is an array. A server checks rights before it looks at documents:
// https://github.com/mongodb/mongo/blob/master/src/mongo/db/commands/connection_status.cpp
// https://github.com/mongodb/mongo/blob/master/src/mongo/db/query/write_ops/insert.cpp
func (l *Ledger) CheckRights(ctx context.Context) error {
	_, err := onFit(ctx, l, "check rights", "", func(ctx context.Context) (none struct{}, err error) {
		status, err := l.rights(ctx)
		if err == nil {
			err = l.mayInsert(ctx, status)
		}
		return none, cmp.Or(err, l.initialised())
	})
	return err
}

// initialised is the error of a collection that isn't there, as the newest look has it. An insert would create it, perhaps in
// a database that nobody has meant, where a worker would have leases of its own.
func (l *Ledger) initialised() error {
	if there, _ := l.fitness.state(); !there {
		return fmt.Errorf("%w: there is no collection %s", store.ErrMissing, l.namespace())
	}
	return nil
}

// rights is the server's reply about the rights of the user; nil if it doesn't know the command, or doesn't answer
// it for this user.
func (l *Ledger) rights(ctx context.Context) (bson.Raw, error) {
	status, err := l.to().client.Database("admin").RunCommand(ctx,
		bson.D{{Key: "connectionStatus", Value: 1}, {Key: "showPrivileges", Value: true}},
		options.RunCmd().SetReadPreference(readpref.Primary()),
	).Raw()
	switch {
	case err != nil && !isLogin(err) && (tolerate(err) == nil || hasCode(err, otherForm...)):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return status, nil
}

// mayInsert returns the server's denial of an insert, if a reply about the rights doesn't list it.
func (l *Ledger) mayInsert(ctx context.Context, status bson.Raw) error {
	if !lacks(status, l.to().db.Name(), l.to().coll.Name(), "insert") {
		return nil
	}
	err := l.insert(ctx, bson.D{{Key: fieldID, Value: bson.A{}}})
	if err == nil || !errors.Is(meaning(err), store.ErrDenied) && judged(err) {
		return nil
	}
	return err
}

// otherForm are the codes of servers that know a command only in another form: BadValue,
// FailedToParse, InvalidOptions, and that of a field which they don't know.
var otherForm = []int{codeBadValue, 9, 72, 40415}

// judged reports that a server refused a document because of its content.
func judged(err error) bool {
	const codeInvalidIDField, codeInvalidBSON = 53, 22
	if we, ok := errors.AsType[mongo.WriteException](err); ok {
		return len(we.WriteErrors) > 0
	}
	return isReply(err) && (hasCode(err, codeInvalidIDField, codeInvalidBSON, codeNotOnView) || hasCode(err, otherForm...))
}

// lacks reports that a reply to connectionStatus lists the rights of a user, and an action on a
// collection isn't among them.
func lacks(status bson.Raw, database, collection, action string) bool {
	users, err := status.LookupErr("authInfo", "authenticatedUsers")
	if err != nil || len(items(users)) == 0 {
		return false // Nobody is logged in, or the server keeps it to itself.
	}
	privileges, err := status.LookupErr("authInfo", "authenticatedUserPrivileges")
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(items(privileges), func(v bson.RawValue) bool {
		p, ok := v.DocumentOK()
		return ok && covers(p, database, collection) && slices.ContainsFunc(items(p.Lookup("actions")), func(a bson.RawValue) bool {
			name, _ := a.StringValueOK()
			return name == action || name == "anyAction"
		})
	})
}

// covers reports that a privilege is about a collection. An empty name stands for all:
// https://www.mongodb.com/docs/manual/reference/resource-document/
func covers(privilege bson.Raw, database, collection string) bool {
	if whole, _ := privilege.Lookup("resource", "anyResource").BooleanOK(); whole {
		return true
	}
	db, isDB := privilege.Lookup("resource", "db").StringValueOK()
	coll, isColl := privilege.Lookup("resource", "collection").StringValueOK()
	return isDB && isColl && (db == "" || db == database) && (coll == "" || coll == collection)
}

// items are those of an array; none if the value isn't one.
func items(v bson.RawValue) []bson.RawValue {
	array, ok := v.ArrayOK()
	if !ok {
		return nil
	}
	values, _ := array.Values()
	return values
}

// noDocument matches none, whatever there is.
var noDocument = bson.D{{Key: fieldID, Value: bson.D{{Key: "$in", Value: bson.A{}}}}}

// rights are the rows of what workers do, tried on no document.
func (x *exam) rights() []storekit.Check {
	to := x.to()
	grant := func(actions, coll, role string) string {
		return fmt.Sprintf("grant %s on %s.%s, or the role %s on %s", actions, to.db.Name(), coll, role, to.db.Name())
	}
	return []storekit.Check{
		{Name: store.CheckAppend, Level: store.LevelFail, Grant: grant("insert", to.coll.Name(), "readWrite"), Ask: func(ctx context.Context) (string, error) {
			status, err := x.Ledger.rights(ctx)
			if err != nil {
				return "", err
			}
			x.status.Store(&status)
			if users, _ := status.LookupErr("authInfo", "authenticatedUsers"); status == nil || len(items(users)) == 0 {
				return "not denied (the server names no user and no rights)", x.mayInsert(ctx, status)
			}
			return "granted", x.mayInsert(ctx, status)
		}},
		{Name: store.CheckRead, Level: store.LevelFail, Grant: grant("find", to.coll.Name(), "readWrite"), Ask: func(ctx context.Context) (string, error) {
			_, err := first(ctx, to.coll, noDocument, projection)
			return "granted", err
		}},
		{Name: store.CheckTrim, Level: store.LevelWarn, Grant: grant("remove", to.coll.Name(), "readWrite"), Ask: func(ctx context.Context) (string, error) {
			_, err := to.coll.DeleteMany(ctx, noDocument)
			return "granted", err
		}},
		{Name: store.CheckRoster, Level: store.LevelWarn, Grant: grant("find, insert, update and remove", x.roster().Name(), "readWrite"), Ask: func(ctx context.Context) (string, error) {
			return "granted", x.onRosterMay(ctx)
		}},
		{Name: CheckHints, Level: store.LevelWarn, Grant: grant("changeStream and find", to.coll.Name(), "read"), Ask: x.hints},
	}
}

// late is what becomes of workers without hints.
const late = "workers look for a released lease when its part ends, which takes seconds"

// hints begins a change stream, as a worker with FailoverWithin does.
func (x *exam) hints(ctx context.Context) (string, error) {
	undated, stop := withoutDate(ctx)
	defer stop()
	stream, err := x.begin(undated)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return "there are no change streams here: " + late, nil
	case errors.Is(meaning(err), store.ErrDenied):
		return "", fmt.Errorf("%w: %s", err, late)
	case err != nil:
		return "", err
	}
	_ = stream.Close(undated)
	if x.server.Load().router {
		return "granted; through a router hints wait for the no-ops of idle shards (periodicNoopIntervalSecs)", nil
	}
	return "granted", nil
}

// onRosterMay returns the server's denial of what workers do on the roster.
func (x *exam) onRosterMay(ctx context.Context) error {
	roster := x.roster()
	cursor, err := roster.Find(ctx, noDocument, options.Find().SetLimit(1))
	if err != nil {
		return err
	}
	_ = cursor.Close(ctx)
	if _, err := roster.UpdateMany(ctx, noDocument, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}); err != nil {
		return err
	}
	if _, err := roster.DeleteMany(ctx, noDocument); err != nil {
		return err
	}
	status := x.status.Load()
	if status != nil && lacks(*status, x.to().db.Name(), roster.Name(), "insert") && !lacks(*status, x.to().db.Name(), x.to().coll.Name(), "insert") {
		return fmt.Errorf("%w: no right to insert into %s.%s", store.ErrDenied, x.to().db.Name(), roster.Name())
	}
	return nil
}
