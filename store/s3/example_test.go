package s3_test

import (
	"context"
	"fmt"
	"log"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

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

// The requests go where the application's own client sends its own.
func ExampleOpen_client() {
	ctx := context.Background()
	client := awss3.New(awss3.Options{Region: "eu-central-1"}) // or awss3.NewFromConfig of the application's configuration
	ledger, err := s3.Open(ctx, s3.Options{URI: "s3://mybucket/jobs", Client: client})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = ledger.Close(ctx) }()
	fmt.Println(ledger)
	// Output: s3://mybucket/jobs/
}

func ExampleRedact() {
	fmt.Println(s3.Redact("s3://mybucket/jobs?region=eu-central-1"))
	fmt.Println(s3.Redact("s3://AKIDEXAMPLE:c2VjcmV0@mybucket/jobs"))
	// Output:
	// s3://mybucket/jobs?region=eu-central-1
	// s3://***
}
