package linear_test

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// A ledger whose second tail doesn't see what its first one saw.
func Example() {
	ctx := context.Background()
	h := linear.NewHistory()
	l := h.Client("a", faultstore.New(memory.New(memory.Options{}), faultstore.Options{
		Plan: func(c faultstore.Call) faultstore.Fault {
			if c.Op == faultstore.OpTail && c.N == 2 {
				return faultstore.StaleRead(1)
			}
			return faultstore.Fault{}
		},
	}))
	defer func() { _ = l.Close(ctx) }()

	_ = l.Append(ctx, storetest.Grant("job", 1))
	_, _, _ = l.Tail(ctx, "job", 1)
	_, err := h.Check(time.Minute)
	fmt.Println(err)
	_, _, _ = l.Tail(ctx, "job", 1)
	_, err = h.Check(time.Minute)
	fmt.Println(err)
	// Output:
	// <nil>
	// history is not linearizable: 1 parts, such as worker type "job", 3 operations
	// 	no explanation for: 5–6 a: tail, limit 1 → []
	// 	after:
	// 		1–2 a: append 1·37da61 → done
	// 		3–4 a: tail, limit 1 → [1·37da61]
}
