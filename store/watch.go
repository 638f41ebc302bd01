package store

import "context"

// Watcher is a Ledger that can say when another handle, perhaps of another process, may have
// appended what frees a lease. Workers then look at once, and not when the time has come anyway.
// They rely on it for nothing else.
type Watcher interface {
	// Watch calls changed with the worker type for which a release or an override may have been
	// appended, or with the empty name if it may be any. A store that can't tell kinds apart calls
	// it for every record. Calls may be missing, late, repeated or wrong: each costs a worker that
	// waits one look at the ledger and one sample of its time, at most. What was appended before
	// Watch needs none.
	//
	// changed doesn't block, and may be called on any goroutine, by several at once, and also
	// while Append has not returned; but not after Watch has returned.
	//
	// Watch blocks until ctx ends, the ledger is closed or it can't watch any more, leaves no
	// goroutine behind, and returns the reason: the error of ctx, ErrClosed, an error that
	// matches errors.ErrUnsupported if trying again is of no use, or another one. Others may use, close or
	// remove what the ledger is kept in meanwhile.
	Watch(ctx context.Context, changed func(workerType string)) error
}

// Frees reports that a record of a kind may free a lease before its window ends. Kinds that are not known
// here may.
func Frees(k Kind) bool {
	switch k {
	case KindGrant, KindReset, KindDone, KindOutcome, KindSighting:
		return false
	case KindRelease, KindOverride, KindOrder:
	}
	return true
}
