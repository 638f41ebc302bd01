package storetest

import (
	"testing"

	"github.com/slotlease/slotlease/store"
)

// Harness tells the suite how to reach one store. Each call of the function
// given to Run makes a harness on empty data.
type Harness struct {
	// Open returns one more independent handle (a connection of its own) on the
	// harness's data. The suite closes it.
	Open func(t testing.TB) store.Ledger
	// Plant writes a raw document at the key (workerType, seq), past the
	// store's own encoder and checks: fields has the stored field names
	// (camelCase) and JSON-like values (string, int64, float64, bool, nil,
	// time.Time, map[string]any). The key's own fields are added by Plant unless
	// fields has them. What the store can't express at all (a column of another
	// type) Plant skips with t.Skip.
	Plant func(t testing.TB, workerType string, seq int64, fields map[string]any)
	// FreeStamp says that Tail gives a stamp.
	FreeStamp bool
	// Rounds of the append race; 0 means 1,000.
	Rounds int
}
