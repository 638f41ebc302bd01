package cosmos_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/slotlease/slotlease/store/cosmos"
)

// A ledger in the container leases of the database jobs. It needs an account to
// run.
func ExampleOpen() {
	ctx := context.Background()
	ledger, err := cosmos.Open(ctx, cosmos.Options{
		URI: "cosmos://myaccount/jobs/leases",
		Key: os.Getenv("COSMOS_KEY"), // Empty for Azure's default credential.
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = ledger.Close(ctx) }()
	if err := ledger.Init(ctx); err != nil {
		log.Print(err)
		return
	}
	if w := ledger.Account().Warning(); w != "" {
		log.Print(w)
	}
	types, err := ledger.WorkerTypes(ctx)
	fmt.Println(types, err)
}

// A key that rotates is read again with each connection.
func ExampleOpen_keyFunc() {
	ctx := context.Background()
	ledger, err := cosmos.Open(ctx, cosmos.Options{
		URI: "cosmos://myaccount/jobs/leases",
		KeyFunc: func(context.Context) (string, error) {
			key, err := os.ReadFile("/run/secrets/cosmos")
			return string(key), err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = ledger.Close(ctx) }()
	fmt.Println(ledger)
	// Output: cosmos jobs/leases at myaccount.documents.azure.com:443
}

func ExampleRedact() {
	fmt.Println(cosmos.Redact("cosmos://myaccount/jobs/leases"))
	fmt.Println(cosmos.Redact("cosmos://c2VjcmV0LWtleQ==@myaccount/jobs"))
	// Output:
	// cosmos://myaccount/jobs/leases
	// cosmos://***
}
