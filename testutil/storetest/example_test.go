package storetest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// The test of a store is a harness and a call of Run.
func ExampleRun() {
	// func TestLedgerKeepsTheContract(t *testing.T)
	_ = func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Harness {
			data := memory.New(memory.Options{})
			return storetest.Harness{
				FreeStamp: true,
				Skips: map[string]string{
					"readers": "all handles may write", "attendance/a reader*": "all handles may write",
					"attendance/a planted presence*": "presences are Go values, so all can be read",
					"two paths":                      "there is one",
					"foreign constraints":            "nobody else gives it any",
				},
				Open: func(testing.TB) store.Ledger { return data.Handle() },
				Plant: func(_ testing.TB, workerType string, seq int64, fields map[string]any) {
					data.Put(storetest.Decode(workerType, seq, fields))
				},
			}
		})
	}
}

// Contenders usually are processes of their own.
func ExampleContend() {
	data := memory.New(memory.Options{})
	won, err := storetest.Contend(context.Background(), data, "invoice-export", 5, 8, "process-1")
	fmt.Println(won, err)
	// Output: [1 2 3 4 5] <nil>
}
