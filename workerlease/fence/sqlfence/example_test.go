package sqlfence_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/slotlease/slotlease/workerlease/fence/sqlfence"
)

// The holder with token 2 has written, so the one with token 1 no longer can.
func ExampleDo() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	if _, err := db.ExecContext(ctx, sqlfence.Schema(sqlfence.SQLite)+"; CREATE TABLE invoices (id, sent)"); err != nil {
		fmt.Println(err)
		return
	}
	for _, token := range []int64{2, 1} {
		err := sqlfence.Do(ctx, db, sqlfence.SQLite, "invoices", token, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO invoices VALUES (7, true)")
			return err
		})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// fence "invoices": the token 1 is stale, since 2 has been seen
}

// A counter that only the newest holder may raise: the fence is checked in the same transaction.
func ExampleDo_counter() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	if _, err := db.ExecContext(ctx, sqlfence.Schema(sqlfence.SQLite)+"; CREATE TABLE counters (name, value); INSERT INTO counters VALUES ('exports', 0)"); err != nil {
		fmt.Println(err)
		return
	}
	// In a worker, the token is Lease.Token.
	raise := func(token int64) error {
		return sqlfence.Do(ctx, db, sqlfence.SQLite, "exports", token, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE counters SET value = value + 1 WHERE name = 'exports'")
			return err
		})
	}
	for _, token := range []int64{1, 1, 2, 1} {
		if err := raise(token); err != nil {
			fmt.Println(err)
		}
	}
	var value int
	if err := db.QueryRowContext(ctx, "SELECT value FROM counters WHERE name = 'exports'").Scan(&value); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(value)
	// Output:
	// fence "exports": the token 1 is stale, since 2 has been seen
	// 3
}
