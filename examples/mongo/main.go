// Mongo runs a worker on a ledger in MongoDB for three slots of one second, and
// fences its work: the document that it writes remembers the token of its last
// writer, and a lower one, of a lease that was over unnoticed, is refused.
//
//	MONGODB_URI=mongodb://127.0.0.1 go run ./examples/mongo
//
// Start it several times to see the slots shared out.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	database := flag.String("database", "slotlease", "`name` of the database for leases and reports")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, cmp.Or(os.Getenv("MONGODB_URI"), "mongodb://127.0.0.1"), *database); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, uri, database string) (err error) {
	client, err := driver.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Disconnect(context.WithoutCancel(ctx))) }()
	ledger, err := mongo.Open(ctx, mongo.Options{Client: client, Database: database})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close(context.WithoutCancel(ctx))) }()
	fmt.Printf("the ledger is %s, database %s\n", mongo.Redact(uri), database)
	// A worker would wait for its store for ever. Here, find out whether there is one.
	starting, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	if err := ledger.Init(starting); err != nil {
		return fmt.Errorf("is there a server? MONGODB_URI says where: %w", err)
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reports := client.Database(database).Collection("Reports")
	held := 0
	return workerlease.Run(ctx, ledger, workerlease.Options{WorkerType: "report", LeaseInterval: time.Second},
		func(ctx context.Context, l workerlease.Lease) error {
			if held++; held == 3 {
				defer cancel()
			}
			if err := publish(ctx, reports, l); err != nil {
				return fmt.Errorf("publish: %w", err) // which is logged
			}
			fmt.Printf("%s  published under token %d\n", l.Slot.Start.Format(time.TimeOnly), l.Token)
			return nil
		})
}

// publish writes the report unless a higher token has. If one has, no document
// matches, so that the upsert tries to insert, and runs into the _id that exists.
func publish(ctx context.Context, reports *driver.Collection, l workerlease.Lease) error {
	_, err := reports.UpdateOne(ctx,
		bson.M{"_id": l.WorkerType, "token": bson.M{"$lte": l.Token}},
		bson.M{"$set": bson.M{"token": l.Token, "by": l.InstanceID, "slot": l.Slot.Start}},
		options.UpdateOne().SetUpsert(true))
	if driver.IsDuplicateKeyError(err) {
		return errors.New("a later lease has written already")
	}
	return err
}
