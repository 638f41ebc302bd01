package postgres_test

import (
	"context"
	"fmt"
	"log"

	"github.com/slotlease/slotlease/store/postgres"
)

// A ledger in the table public.worker_leases of the database jobs, on whichever of two servers is the primary. It
// needs servers to run. The password comes from PGPASSWORD or ~/.pgpass.
func ExampleOpen() {
	ctx := context.Background()
	ledger, err := postgres.Open(ctx, postgres.Options{URI: "postgres://worker@db1.example.net,db2.example.net/jobs"})
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
	fmt.Println(postgres.Redact("postgres://worker:secret@db1.example.net/jobs?table=leases"))
	fmt.Println(postgres.Redact("postgres://db1.example.net/jobs"))
	// Output:
	// postgres://worker:***@db1.example.net/jobs?table=leases
	// postgres://db1.example.net/jobs
}
