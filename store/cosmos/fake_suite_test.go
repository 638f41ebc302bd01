package cosmos

import (
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// The conformance suite on the fake account: what it shows beyond the peer is the
// server time that is selected along, in milliseconds.
func TestConformanceOfTheFakeAccount(t *testing.T) {
	if testing.Short() {
		t.Skip("appends tens of thousands of times, as on the peer")
	}
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		f := newFake()
		f.container = nil
		return storetest.Harness{
			FreeStamp: true,
			Rounds:    100, // make soak runs 1,000
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return f.open(t, Options{})
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				if v, ok := fields["workerType"]; ok && v != any(workerType) {
					t.Skip("workerType is the partition key: no item can contradict it")
				}
				all := map[string]any{"seq": seq}
				for k, v := range fields {
					all[k] = v
				}
				f.plant(t, workerType, store.Key(workerType, seq), all)
			},
		}
	})
}
