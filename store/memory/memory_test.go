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
		FreeStamp: true,
		Skips: map[string]string{
			"readers": "all handles may write", "attendance/a reader*": "all handles may write",
			"attendance/a planted presence*": "presences are Go values, so all can be read",
			"foreign constraints":            "nobody else gives it any",
		},
		Open:          func(testing.TB) store.Ledger { return l.Handle() },
		OpenElsewhere: func(testing.TB) (store.Ledger, error) { return l.Handle(), nil },
		Plant: func(_ testing.TB, workerType string, seq int64, fields map[string]any) {
			l.Put(storetest.Decode(workerType, seq, fields))
		},
	}
}

func TestLedgerKeepsTheContract(t *testing.T) { storetest.Run(t, open) }
