package mongo_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/slotlease/slotlease/store/mongo"
)

// A ledger in the collection leases of the database jobs. It needs a server to
// run.
func ExampleOpen() {
	ctx := context.Background()
	ledger, err := mongo.Open(ctx, mongo.Options{
		URI: "mongodb://jane:" + os.Getenv("MONGODB_PASSWORD") + "@db1,db2,db3/jobs?replicaSet=rs0&collection=leases",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = ledger.Close(ctx) }()
	if err := ledger.Init(ctx); err != nil {
		log.Print(err)
		return
	}
	types, err := ledger.WorkerTypes(ctx)
	fmt.Println(types, err)
}

func ExampleRedact() {
	fmt.Println(mongo.Redact("mongodb://jane:secret@db1,db2/jobs?replicaSet=rs0"))
	// Output: mongodb://***:***@db1,db2/jobs?replicaSet=rs0
}
