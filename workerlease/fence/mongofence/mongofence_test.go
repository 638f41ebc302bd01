package mongofence_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/mongofence"
)

func collection(t *testing.T) *mongo.Collection {
	t.Helper()
	return collectionOf(t, options.Client())
}

func collectionOf(t *testing.T, o *options.ClientOptions) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(o.ApplyURI(mongopeer.URI(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := client.Database("mongofence").Collection(bson.NewObjectID().Hex())
	t.Cleanup(func() {
		if err := client.Disconnect(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

func set(value any) bson.D {
	return bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: value}}}}
}

func read(t *testing.T, c *mongo.Collection) (found bson.M) {
	t.Helper()
	if err := c.FindOne(t.Context(), bson.D{{Key: "_id", Value: "a"}}).Decode(&found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAStaleTokenIsRefused(t *testing.T) {
	c, ctx := collection(t), t.Context()
	document := bson.D{{Key: "_id", Value: "a"}, {Key: "v", Value: "new"}}
	writes := map[string]func(token int64) error{
		"insert":  func(token int64) error { return mongofence.Insert(ctx, c, "a", token, document) },
		"update":  func(token int64) error { return mongofence.Update(ctx, c, "a", token, set("updated")) },
		"replace": func(token int64) error { return mongofence.Replace(ctx, c, "a", token, document) },
		"delete":  func(token int64) error { return mongofence.Delete(ctx, c, "a", token) },
	}
	token := int64(1)
	for _, step := range []string{"insert", "update", "replace", "delete", "insert", "delete", "update", "delete", "replace"} {
		for range 2 {
			token++
			if err := writes[step](token); err != nil {
				t.Fatalf("%s with token %d: %v", step, token, err)
			}
			before := read(t, c)
			if before["fence"] != token || (step == "delete") != (before["fenceDeleted"] == true) {
				t.Fatalf("after %s with token %d: %v", step, token, before)
			}
			for name, late := range writes {
				var stale *fence.StaleError
				if err := late(token - 1); !errors.As(err, &stale) || stale.Token != token-1 || stale.Newest != token {
					t.Errorf("late %s after %s: %v", name, step, err)
				}
			}
			if after := read(t, c); after["fence"] != token || after["v"] != before["v"] {
				t.Errorf("late writes changed %v to %v", before, after)
			}
			if step == "insert" {
				if err := writes[step](token); !errors.Is(err, mongofence.ErrExists) {
					t.Errorf("a second insert: %v", err)
				}
				break
			}
		}
	}
}

// The peer's updates are not atomic, so the holders write one after the other.
func TestManyHolders(t *testing.T) {
	c, ctx := collection(t), t.Context()
	newest := int64(0)
	for _, i := range rand.Perm(20) {
		token := int64(i/2 + 1)
		err := mongofence.Update(ctx, c, "a", token, set(token))
		if stale := errors.Is(err, fence.ErrStale); stale != (token < newest) || err != nil && !stale {
			t.Errorf("token %d after %d: %v", token, newest, err)
		}
		newest = max(newest, token)
		if found := read(t, c); found["v"] != newest || found["fence"] != newest {
			t.Fatalf("after %d: %v", newest, found)
		}
	}
}

func TestRefusedArguments(t *testing.T) {
	c, ctx := collection(t), t.Context()
	for name, update := range map[string]any{
		"no operator": bson.D{{Key: "v", Value: 1}},
		"the fence":   bson.D{{Key: "$inc", Value: bson.D{{Key: "fence", Value: 1}}}},
		"a part":      bson.M{"$set": bson.M{"fenceDeleted.a": 1}},
		"a rename":    bson.M{"$rename": bson.M{"v": "fence"}},
	} {
		if err := mongofence.Update(ctx, c, "a", 1, update); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if err := mongofence.Delete(ctx, c, "a", 0); err == nil {
		t.Error("the token 0 was taken")
	}
	if n, err := c.CountDocuments(ctx, bson.D{}); n != 0 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
	if _, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: "a"}}); err != nil {
		t.Fatal(err)
	}
	if err := mongofence.Update(ctx, c, "a", 1, set("fence")); !errors.Is(err, mongofence.ErrUnfenced) {
		t.Errorf("an unfenced document: %v", err)
	}
}

// The check and the write are apart, and a newer holder writes between them: the late
// write gets through.
func TestACheckApartFromTheWriteIsNotEnough(t *testing.T) {
	c, ctx := collection(t), t.Context()
	if err := mongofence.Update(ctx, c, "a", 1, set(1)); err != nil {
		t.Fatal(err)
	}
	if found := read(t, c); found["fence"] != int64(1) { // the check of 1
		t.Fatal(found)
	}
	if err := mongofence.Update(ctx, c, "a", 2, set("two")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: "a"}}, set("one")); err != nil {
		t.Fatal(err)
	}
	if found := read(t, c); found["v"] != "one" {
		t.Errorf("found %v", found)
	}
}

// MongoDB applies one update of one document atomically. The peer doesn't, so what is checked is what is
// sent: the token is compared and stored by one and the same command.
func TestEachWriteComparesAndStoresTheTokenInOneCommand(t *testing.T) {
	var mu sync.Mutex
	var sent []bson.Raw
	c := collectionOf(t, options.Client().SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, bytes.Clone(e.Command))
	}}))
	ctx, document := t.Context(), bson.D{{Key: "v", Value: 1}}
	for i, write := range []func(token int64) error{
		func(token int64) error { return mongofence.Insert(ctx, c, "a", token, document) },
		func(token int64) error { return mongofence.Update(ctx, c, "a", token, set(2)) },
		func(token int64) error { return mongofence.Replace(ctx, c, "a", token, document) },
		func(token int64) error { return mongofence.Delete(ctx, c, "a", token) },
	} {
		token := int64(7 + i)
		sent = nil
		if err := write(token); err != nil {
			t.Fatal(err)
		}
		if len(sent) != 1 || sent[0].Index(0).Key() != "update" {
			t.Fatalf("write %d sends %v, want one update", i, sent)
		}
		one := sent[0].Lookup("updates", "0")
		if w, _ := sent[0].Lookup("writeConcern", "w").StringValueOK(); w != "majority" {
			t.Errorf("write %d has the write concern %q, want majority", i, w)
		}
		u := one.Document()
		id, _ := u.Lookup("q", "_id").StringValueOK()
		most, _ := u.Lookup("q", "fence", "$lte").AsInt64OK()
		stored, ok := u.Lookup("u", "fence").AsInt64OK()
		if !ok {
			stored, _ = u.Lookup("u", "$set", "fence").AsInt64OK()
		}
		upsert, _ := u.Lookup("upsert").BooleanOK()
		many, _ := u.Lookup("multi").BooleanOK()
		if id != "a" || most != token || stored != token || !upsert || many {
			t.Errorf("write %d sends %v, want it to compare and to store %d, in one document", i, sent[0], token)
		}
	}
}

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
