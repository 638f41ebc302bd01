package mongofence_test

import (
	"context"
	"errors"
	"log"
	"os"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/mongofence"
)

// A task marks an invoice as sent, unless another holder has. It needs a server to run.
func ExampleUpdate() {
	client, err := mongo.Connect(options.Client().ApplyURI(os.Getenv("MONGODB_URI")))
	if err != nil {
		log.Fatal(err)
	}
	invoices := client.Database("shop").Collection("invoices")
	task := func(ctx context.Context, l workerlease.Lease) error {
		err := mongofence.Update(ctx, invoices, 7, l.Token, bson.D{{Key: "$set", Value: bson.D{{Key: "sent", Value: true}}}})
		if errors.Is(err, fence.ErrStale) {
			return nil // a newer holder does the work
		}
		return err
	}
	_ = task // for workerlease.Run
}
