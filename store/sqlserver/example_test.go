//go:build sqlserver

package sqlserver_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/slotlease/slotlease/store/sqlserver"
)

// A ledger in the table dbo.worker_leases of the database jobs, behind the listener of an availability group. It needs
// servers to run. If the URI had no password, store.Open would read it from SQLCMDPASSWORD.
func ExampleOpen() {
	ctx := context.Background()
	ledger, err := sqlserver.Open(ctx, sqlserver.Options{URI: "sqlserver://worker@listener.example.net/jobs", Password: "from a secret file"})
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
	db, err := sql.Open("sqlserver", "sqlserver://worker@listener.example.net?database=jobs")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ledger, err := sqlserver.Open(ctx, sqlserver.Options{DB: db})
	if err != nil {
		log.Print(err)
		return
	}
	types, err := ledger.WorkerTypes(ctx)
	fmt.Println(types, err, ledger.Close(ctx))
}

func ExampleRedact() {
	fmt.Println(sqlserver.Redact("sqlserver://worker:secret@db1.example.net/jobs?table=leases"))
	// Output: sqlserver://worker:***@db1.example.net/jobs?table=leases
}
