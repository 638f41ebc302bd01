// Package storetest is the conformance suite that every ledger store passes, ours
// and yours.
//
// A store's test is a harness and one call:
//
//	func TestLedgerKeepsTheContract(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness {
//			dir := t.TempDir()
//			return storetest.Harness{
//				Open:  func(t testing.TB) store.Ledger { return open(t, dir) },
//				Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) { … },
//			}
//		})
//	}
//
// Each case is a sentence of the contract of [store.Ledger]. What the suite can't
// see is durability, and what a store of several servers does when one of them
// fails. [Contend] and [CheckWins] make a race across processes; [Grant], [Fields]
// and [Decode] serve further tests of a store.
package storetest
