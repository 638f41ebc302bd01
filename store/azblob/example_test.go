package azblob_test

import (
	"context"
	"fmt"
	"log"

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

func ExampleRedact() {
	fmt.Println(azblob.Redact("azblob://myaccount/leases/jobs"))
	fmt.Println(azblob.Redact("azblob://myaccount/leases?sig=c2VjcmV0"))
	// Output:
	// azblob://myaccount/leases/jobs
	// azblob://***
}
