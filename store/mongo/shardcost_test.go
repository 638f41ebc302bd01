package mongo

import (
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// docs/stores/mongodb.md multiplies these by the operations of a slot.
func TestOperationsOnAShardedCollectionCostAsManyCommandsAsElsewhere(t *testing.T) {
	t.Parallel()
	for field, allShards := range map[string]map[string]int{
		// Ranges of _id are spread over all shards by its hash.
		"_id":        {"Tail": 1, "Trim": 2},
		"workerType": {},
	} {
		f := cluster(t, field, bson.D{{Key: "_id", Value: store.Key("job", 3)}})
		l := f.open(Options{})
		ctx := within(t, patience)
		must(t, "Now()", documenttest.ErrorOf(l.Now(ctx)))
		for _, c := range []struct {
			name     string
			commands int
			call     func() error
		}{
			{"Now", 1, func() error { return documenttest.ErrorOf(l.Now(ctx)) }},
			{"Append", 1, func() error { return l.Append(ctx, storetest.Grant("job", 4)) }},
			{"Get", 1, func() error { return documenttest.ErrorOf(l.Get(ctx, "job", 3)) }},
			{"Tail", 1, func() error { _, _, err := l.Tail(ctx, "job", 2); return err }},
			{"Trim", 3, func() error { n, err := l.Trim(ctx, "job", 3); return errors.Join(err, notOne(n)) }},
		} {
			commands, broad := f.cost()
			must(t, c.name+"()", c.call())
			moreCommands, moreBroad := f.cost()
			documenttest.Equal(t, "commands of "+c.name+"() by "+field, moreCommands-commands, c.commands)
			documenttest.Equal(t, "commands of "+c.name+"() by "+field+" for all shards", moreBroad-broad, allShards[c.name])
		}
	}
	raw, err := bson.Marshal(encode(storetest.Grant("job", 4)))
	if err != nil || len(raw) < 400 || len(raw) > 600 {
		t.Errorf("Marshal() of a record = %d bytes, %v, want about 500, as the documentation says", len(raw), err)
	}
}

func notOne(n int) error {
	if n != 1 {
		return fmt.Errorf("%d records deleted, want 1", n)
	}
	return nil
}

// cost counts the commands on the ledger and its clock, and those among them that a
// router must send to all shards: what has a range of _id, and no worker type.
func (f *fakeServer) cost() (commands, broad int) {
	for _, name := range []string{"insert", "find", "delete", "aggregate"} {
		for _, c := range f.sent(name) {
			if of := c.Index(0).Value().StringValue(); of != DefaultCollection && of != clockCollection {
				continue
			}
			commands++
			_, ranged := c.Lookup("filter", fieldID).DocumentOK()
			if _, err := c.LookupErr("filter", "workerType"); ranged && err != nil {
				broad++
			}
		}
	}
	return commands, broad
}
