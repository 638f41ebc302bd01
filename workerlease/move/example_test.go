package move_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease/move"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// The ledger of a worker type goes from one database to another.
func Example() {
	from, to := memory.New(memory.Options{}), memory.New(memory.Options{}) // Any two stores.
	ctx := context.Background()
	if _, err := operate.On(from).Give(ctx, operate.Order{Kind: store.OrderPrefer, WorkerType: "mail", Target: "a", For: time.Hour}); err != nil {
		log.Fatal(err)
	}
	r, err := move.Move(ctx, from, to, move.Options{WorkerType: "mail", Reason: "the database moves"})
	fmt.Println(r.Copied > 0, err)
	// Output: true <nil>
}
