package memory_test

import (
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func open(*testing.T) storetest.Harness {
	l := memory.New(memory.Options{})
	return storetest.Harness{
		FreeStamp:     true,
		Open:          func(testing.TB) store.Ledger { return l.Handle() },
		OpenElsewhere: func(testing.TB) (store.Ledger, error) { return l.Handle(), nil },
		Plant: func(_ testing.TB, workerType string, seq int64, fields map[string]any) {
			l.Put(storetest.Decode(workerType, seq, fields))
		},
	}
}

func TestLedgerKeepsTheContract(t *testing.T) { storetest.Run(t, open) }
