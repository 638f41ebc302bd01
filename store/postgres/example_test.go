package postgres_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5/pgxpool"

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

// A ledger in the application's own pool, which stays open when the ledger is closed. It needs a server to run.
func ExampleOpen_pool() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://worker@db1.example.net,db2.example.net/jobs?target_session_attrs=read-write")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	ledger, err := postgres.Open(ctx, postgres.Options{Pool: pool})
	if err != nil {
		log.Print(err)
		return
	}
	types, err := ledger.WorkerTypes(ctx)
	fmt.Println(types, err, ledger.Close(ctx))
}

// A password that changes, such as a token that is good for some minutes, is asked for with each new connection.
func ExampleOpen_password() {
	ctx := context.Background()
	ledger, err := postgres.Open(ctx, postgres.Options{
		URI:          "postgres://worker@db.example.net/jobs",
		PasswordFunc: func(context.Context) (string, error) { return "the token of now", nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ledger, ledger.Close(ctx))
	// Output: postgres public.worker_leases in jobs at db.example.net:5432 <nil>
}

func ExampleRedact() {
	fmt.Println(postgres.Redact("postgres://worker:secret@db1.example.net/jobs?table=leases"))
	fmt.Println(postgres.Redact("postgres://db1.example.net/jobs"))
	// Output:
	// postgres://worker:***@db1.example.net/jobs?table=leases
	// postgres://db1.example.net/jobs
}
