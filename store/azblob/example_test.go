package azblob_test

import (
	"context"
	"fmt"
	"log"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/slotlease/slotlease/store/azblob"
)

// A ledger in the folder jobs of a container. It needs the account, and a key or an identity, to run.
func ExampleOpen() {
	ctx := context.Background()
	ledger, err := azblob.Open(ctx, azblob.Options{URI: "azblob://myaccount/leases/jobs"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = ledger.Close(ctx) }()
	if err := ledger.Init(ctx); err != nil {
		log.Print(err)
		return
	}
	if w := ledger.Warning(); w != "" {
		log.Print(w)
	}
	types, err := ledger.WorkerTypes(ctx)
	fmt.Println(types, err)
}

// Requests go by the application's own client of the container.
func ExampleOpen_client() {
	ctx := context.Background()
	client, err := container.NewClientWithNoCredential("https://myaccount.blob.core.windows.net/leases", nil) // or with the application's credential
	if err != nil {
		log.Fatal(err)
	}
	ledger, err := azblob.Open(ctx, azblob.Options{URI: "azblob://myaccount/leases/jobs", Client: client})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = ledger.Close(ctx) }()
	fmt.Println(ledger)
	// Output: azblob://myaccount/leases/jobs/
}

func ExampleRedact() {
	fmt.Println(azblob.Redact("azblob://myaccount/leases/jobs"))
	fmt.Println(azblob.Redact("azblob://myaccount/leases?sig=c2VjcmV0"))
	// Output:
	// azblob://myaccount/leases/jobs
	// azblob://***
}
