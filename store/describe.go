package store

import (
	"context"
	"time"
)

// Described is a Ledger that says more of itself than its records and its time: what its workers, and people, should know of the
// store behind it.
type Described interface {
	// Describe doesn't ask the store, doesn't block, and is safe for concurrent use.
	Describe() Description
}

// Description is what a ledger says of itself. A function that is nil is one that the ledger doesn't have. All are safe for
// concurrent use, also after Close; those without a context don't ask the store and don't block.
type Description struct {
	// FailoverFloor is for a ledger whose clock is known so poorly that parts of a slot can be too short to work in, such as one
	// that is read from the Date of HTTP replies, in whole seconds. It is 8 × the uncertainty of store time, as workers know it
	// after some replies. Workers refuse to start with less than that and 4 × Margin as workerlease.Options.FailoverWithin, since
	// they would lose parts of their slots, and with slots shorter than a quarter of it and Margin, which they would lose whole.
	// It is constant; 0 means no floor.
	FailoverFloor time.Duration
	// Durability says what becomes of the records that were acknowledged. That they stay is one of the two assumptions of every
	// lease: where one is lost, a second worker may get the same slot. It depends on the ledger's options, and on what its
	// operations have found out of the store so far.
	Durability func() Durability
	// Warning describes a shortcoming of the store that doesn't keep workers from using it, such as a clock that seems wrong: one
	// line for people, as of the newest operation; empty if there is nothing to say. Describe(l).Warning is never nil.
	Warning func() string
	// Note says what the stamps lack although no action is needed, such as the clock of a server that is being restarted: one line
	// for people, as of the newest stamp; empty if there is nothing to say. Workers log it with the time, at debug level.
	// Describe(l).Note is never nil.
	Note func() string
	// InitScript is what Init runs where nothing is there yet, as commands for the store's own tool, with the rights that a worker
	// needs, for somebody who does it by hand. Comments say which tool, what is to be filled in, and that nothing is needed, where
	// it isn't. It shows no secret.
	InitScript func() string
	// CheckRights finds out whether a worker's rights suffice, so that a mistake shows at the start and not in the first slot. It
	// stores nothing. It returns ErrDenied, with the name of what isn't granted, if appends are surely denied as of now, and nil
	// if they aren't or if that can't be found out; ErrMissing if Init hasn't been called, also where an append would create what
	// is missing. Other errors leave it open.
	CheckRights func(ctx context.Context) error
	// Examine asks the store for all that only it knows of itself, and stores nothing: a right is tried without storing, or by
	// what the store says of it. It returns one Finding for each check, and those that failed, too: a fault hides no other, unless
	// nothing can be asked without what is missing. Such checks have LevelSkip, with the reason. It works on a store that
	// operations refuse.
	//
	// It returns by the end of ctx at the latest, with what was found by then. The error says why there is no Finding at all, as
	// after Close. It is for people, and takes some round trips: don't call it in each slot.
	Examine func(ctx context.Context) ([]Finding, error)
}

// Durability is what of the acknowledged records survives, in one plain sentence each, for people. None is empty.
type Durability struct {
	// Crash: a process of the store dies, that of one server or that which holds the records.
	Crash string `json:"crash"`
	// Power: the machine of such a process loses power, or its system crashes.
	Power string `json:"power"`
	// Failover: a copy of the ledger takes over, such as another server or another region.
	Failover string `json:"failover"`
}

// Describe returns what a ledger, or the one that it wraps, says of itself. Its Warning and Note can be called whatever the
// ledger has.
func Describe(l Ledger) Description {
	var d Description
	if described, ok := As[Described](l); ok {
		d = described.Describe()
	}
	silent := func() string { return "" }
	if d.Warning == nil {
		d.Warning = silent
	}
	if d.Note == nil {
		d.Note = silent
	}
	return d
}

// As returns a ledger as one of the optional interfaces of this package, or else the ledger that it wraps, if it has a method
// Unwrap() Ledger, and so on. A wrapper that must see the calls of an interface has its methods itself.
func As[T any](l Ledger) (T, bool) {
	for l != nil {
		if t, ok := l.(T); ok {
			return t, true
		}
		w, ok := l.(interface{ Unwrap() Ledger })
		if !ok {
			break
		}
		l = w.Unwrap()
	}
	var none T
	return none, false
}
