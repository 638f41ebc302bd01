package s3_test

import (
	"context"
	"fmt"
	"log"

	"github.com/slotlease/slotlease/store/s3"
)

// A ledger in the folder jobs of a bucket. It needs the bucket, and credentials in the environment, to run.
func ExampleOpen() {
	ctx := context.Background()
	ledger, err := s3.Open(ctx, s3.Options{URI: "s3://mybucket/jobs?region=eu-central-1"})
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
	fmt.Println(s3.Redact("s3://mybucket/jobs?region=eu-central-1"))
	fmt.Println(s3.Redact("s3://AKIDEXAMPLE:c2VjcmV0@mybucket/jobs"))
	// Output:
	// s3://mybucket/jobs?region=eu-central-1
	// s3://***
}
