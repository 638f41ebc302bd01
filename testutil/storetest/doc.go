// Package storetest is the conformance suite for ledger stores: those of this module,
// and yours.
//
// The test of a store is a harness and one call:
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
// Each case is a sentence of the contract of [store.Ledger]. Those of [store.Watcher], [store.Pager],
// [store.Roster] and [store.Follower] are for stores that are so. Nobody need announce that a store is no store.Follower. A harness announces in Skips which cases it skips, and why: any other skip
// is a failure.
//
// [RunPeer] kills, pauses and restarts a store's server: what was acknowledged survives, operations end in
// time, and handles work again. The suites can't check what a loss of power leaves, nor how a store of
// several servers behaves when one of them fails.
// [Contend] and [CheckWins] make a race across processes. [Grant], [Fields], [Decode],
// [Presence] and [PresenceFields] help with a store's own tests.
package storetest
