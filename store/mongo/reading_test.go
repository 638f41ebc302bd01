package mongo

import (
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/store"
)

// openReading opens a ledger as a user with the role read: by a server that passes reading
// commands on to another, and answers all else as MongoDB does if rights are missing.
func openReading(t testing.TB, client *mongo.Client, database string) store.Ledger {
	t.Helper()
	// The other server is on this machine.
	f := serve(t, &fakeServer{now: time.Now, reply: func(name string, command bson.Raw) bson.D {
		if !slices.Contains([]string{"find", "getMore", "killCursors", "listCollections", "listIndexes", "collStats", "hello", "ping", "aggregate", "endSessions"}, name) {
			return commandError(codeUnauthorized, "Unauthorized", "not authorized on "+database+" to execute command { "+name+": … }")
		}
		return passedOn(t, client, database, command)
	}})
	return f.open(Options{Database: database})
}

// passedOn is what a server answers to a command.
func passedOn(t testing.TB, client *mongo.Client, database string, command bson.Raw) bson.D {
	t.Helper()
	var asked bson.D
	must(t, "Unmarshal()", bson.Unmarshal(command, &asked))
	asked = slices.DeleteFunc(asked, func(e bson.E) bool {
		return slices.Contains([]string{"$db", "lsid", "$clusterTime", "$readPreference", "maxTimeMS"}, e.Key)
	})
	ctx, cancel := withoutDate(within(t, time.Minute)) // A getMore takes no maxTimeMS.
	defer cancel()
	raw, err := client.Database(database).RunCommand(ctx, asked).Raw()
	if err != nil && raw == nil {
		return commandError(1, "InternalError", err.Error())
	}
	var answer bson.D
	must(t, "Unmarshal()", bson.Unmarshal(raw, &answer))
	return answer
}
