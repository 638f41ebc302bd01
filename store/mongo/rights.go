package mongo

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/slotlease/slotlease/store"
)

var _ store.RightsChecker = (*Ledger)(nil)

// CheckRights returns store.ErrDenied if the user has no right to insert, and nil if it has, or
// if the server doesn't tell. Any other error leaves it open, as that of a server which steps down.
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
		return none, err
	})
	return err
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
