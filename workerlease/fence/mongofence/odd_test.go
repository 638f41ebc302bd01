package mongofence_test

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/mongofence"
)

// An id is a value, whatever it looks like: it selects no other document.
func TestAnIDIsNoQuery(t *testing.T) {
	for name, id := range map[string]any{
		"operator": bson.D{{Key: "$gt", Value: ""}},
		"map":      bson.M{"$ne": "b"},
		"regex":    bson.Regex{Pattern: "."},
	} {
		t.Run(name, func(t *testing.T) {
			c, ctx := collection(t), t.Context()
			if err := mongofence.Update(ctx, c, "a", 1, set("old")); err != nil {
				t.Fatal(err)
			}
			err := mongofence.Update(ctx, c, id, 2, set("new"))
			if found := read(t, c); found["v"] != "old" || found["fence"] != int64(1) {
				t.Errorf("an update of %v, which answered %v, changed another document to %v", id, err, found)
			}
		})
	}
}

// What other writers left in the field of the fence is no token.
func TestAFieldThatIsNoIntegerIsNoFence(t *testing.T) {
	for name, value := range map[string]any{"text": "7", "null": nil, "document": bson.D{{Key: "x", Value: 1}}, "bool": true, "fraction": 7.5} {
		t.Run(name, func(t *testing.T) {
			c, ctx := collection(t), t.Context()
			if _, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: "a"}, {Key: "fence", Value: value}}); err != nil {
				t.Fatal(err)
			}
			if err := mongofence.Update(ctx, c, "a", 3, set("new")); !errors.Is(err, mongofence.ErrUnfenced) {
				t.Errorf("Update() = %v, want ErrUnfenced", err)
			}
		})
	}
}

// Names of fields differ by case, too: the document has a field Fence of its own.
func TestAFieldOfAnotherCaseIsNoFence(t *testing.T) {
	for name, value := range map[string]any{"text": "garden", "number": int64(1)} {
		t.Run(name, func(t *testing.T) {
			c, ctx := collection(t), t.Context()
			if _, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: "a"}, {Key: "fence", Value: int64(5)}, {Key: "Fence", Value: value}}); err != nil {
				t.Fatal(err)
			}
			var stale *fence.StaleError
			if err := mongofence.Update(ctx, c, "a", 3, set("late")); !errors.As(err, &stale) || stale.Newest != 5 {
				t.Errorf("Update() = %v, want that 3 is stale since 5", err)
			}
		})
	}
}
