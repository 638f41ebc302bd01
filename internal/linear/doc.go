// Package linear checks that a ledger is linearizable: that what its callers saw,
// however their calls overlapped, could have been seen if each call had taken
// effect at one instant between its start and its end. A trim alone may take as long
// as its call, since stores delete records one by one. It is what the protocol
// asks of a store, and it is checked from the outside, by callers' histories
// alone, with the checker porcupine.
//
// A [History] records the calls of clients:
//
//	h := linear.NewHistory()
//	a, b := h.Client("a", ledger), h.Client("b", ledger)
//	// … a and b are used at once, as any store.Ledger …
//	result, err := h.Check(time.Minute)
//
// It reads no clock: a counter orders the events. So it works in a testing/synctest
// bubble, where time stands still between sleeps. A [HistoryFile] does the same for one
// of several processes.
//
// # The specification
//
// A ledger is, for each worker type, a set of records with distinct Seqs.
//
//   - Append inserts its record if the key is free.
//   - Append that answers ErrConflict found a record at its key. It may be its own:
//     a driver that lost the first reply tries again, and sees its own success as a
//     conflict. So a conflict at a free key means that this very call
//     stored its record; it can't mean that nothing happened.
//   - Get returns the record at the key, all of it, or ErrNotFound.
//   - Tail returns the newest records, newest first: as many as there are, up to
//     the limit, but perhaps without those that a trim deletes meanwhile. Placeholders for unreachable keys (Seq 0) are ignored.
//   - Trim that deleted anything may have deleted any of the records below its
//     bound, but not the head, one by one between its call and its reply; one that
//     deleted nothing changed nothing. Which and how many it must delete isn't checked: a store may look for
//     the head first and delete later. The suite in testutil/storetest demands
//     more, where nothing is concurrent.
//   - A deleted record stays deleted until a client appends to its key.
//
// A record is identified by its Seq, its Claim and a hash of all its fields.
//
// # Unknown outcomes
//
// Of errors, only ErrConflict, ErrNotFound and ErrInvalid are answers. After any
// other, and when a process dies within a call, an append may have taken effect, or
// may do so at any time later, once, or never: it stays open past the end of the
// history. After a trim of unknown outcome, everything below its bound except the
// head may vanish at any time. A read without an answer is left out, and so is a call
// that was refused with ErrInvalid.
//
// The error doesn't show whether a call was sent at all. A call that wasn't sent is one
// that never took effect.
//
// # How the search is kept small
//
// In the worst case the search is exponential in the number of overlapping calls, and
// a call of unknown outcome overlaps with everything after it. So the search is
// reduced where that changes no verdict:
//
//   - Worker types are checked one by one, and so are single keys of a worker type
//     that was never tailed or trimmed: linearizability is a property of each object
//     alone.
//   - An append of unknown outcome whose record was read took effect before the
//     first read of it ended, and after all that missed it before it was last read.
//   - One whose record was never read is left out, as if it came last. Without trims
//     that loses nothing: it would have kept its key forever, so it can only explain
//     a conflict, and a conflict explains itself. With trims it may still matter as a
//     head that allowed the deletion of the record below; only such appends are
//     tried.
//   - Uncertainty about the ledger (a record that a trim may have deleted, one of two
//     that a conflict may have left) is kept in one state, key by key.
//   - Before the search a guess is tried: that a record was stored when a client
//     first saw it.
//
// The tests compare the verdicts on small random histories with those of a search
// through all orders.
package linear
