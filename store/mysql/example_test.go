package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/slotlease/slotlease/store/mysql"
)

// A ledger in the table worker_leases of the database jobs, on whichever of two servers takes writes. It needs servers
// to run. If the URI had no password, store.Open would read it from MYSQL_PWD.
func ExampleOpen() {
	ctx := context.Background()
	ledger, err := mysql.Open(ctx, mysql.Options{URI: "mysql://worker@db1.example.net,db2.example.net/jobs", Password: "from a secret file"})
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
	db, err := sql.Open("mysql", "worker@tcp(db.example.net)/jobs?tls=true")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ledger, err := mysql.Open(ctx, mysql.Options{DB: db, Database: "jobs"})
	if err != nil {
		log.Print(err)
		return
	}
	types, err := ledger.WorkerTypes(ctx)
	fmt.Println(types, err, ledger.Close(ctx))
}

func ExampleRedact() {
	fmt.Println(mysql.Redact("mysql://worker:secret@db1.example.net/jobs?table=leases"))
	fmt.Println(mysql.Redact("mariadb://db1.example.net/jobs"))
	// Output:
	// mysql://worker:***@db1.example.net/jobs?table=leases
	// mariadb://db1.example.net/jobs
}
