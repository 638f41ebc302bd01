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
