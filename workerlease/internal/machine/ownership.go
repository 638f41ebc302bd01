package machine

import (
	"errors"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Identity is compared with a record to find out whose it is.
type Identity struct {
	Claim      string // the id of a claim
	InstanceID string
	Group      string
}

// Outcome is the outcome of an append, as far as its reply shows.
type Outcome int

// The outcomes.
const (
	// Landed: the record is in the ledger.
	Landed Outcome = iota
	// Taken: a record stands at its key. It may be the very one that was sent.
	Taken
	// Refused: the store will never take it.
	Refused
	// NotStored: it is not in the ledger and never will be, but another may be stored.
	NotStored
	// Unfounded: nor that, and the record below isn't in the ledger any more.
	Unfounded
	// OutcomeUnknown: it may be in the ledger, or may yet be stored.
	OutcomeUnknown
)

// outcome takes no error for a failure: the record may have been stored and the reply
// lost, and an append that timed out may be stored later. Nor does it take a conflict for
// a loss: drivers retry, and find their own record. Only reading the key back decides.
func outcome(err error) Outcome {
	switch {
	case err == nil:
		return Landed
	case errors.Is(err, store.ErrConflict):
		return Taken
	case errors.Is(err, store.ErrInvalid):
		return Refused
	case errors.Is(err, store.ErrWentBack):
		return Unfounded
	case errors.Is(err, store.ErrNotStored):
		return NotStored
	default:
		return OutcomeUnknown
	}
}

// mine compares the claim's random id alone. An InstanceID is a label: a worker that was
// restarted, or copied with its settings, has claims of its own.
func mine(r store.Record, id Identity) bool { return r.Claim == id.Claim }

// kin shares only among workers that were put into a group on purpose.
func kin(r store.Record, id Identity) bool { return id.Group != "" && r.Group == id.Group }

// start never lies before the end of the head, whoever holds it and whatever one's own
// slots are. This keeps windows disjoint.
func start(c Claim, head store.Record) time.Time { return later(c.Start, head.WindowEnd) }

// gap reports a gap after a term that has not surely ended: its holder may extend it to
// where the grant would begin.
func gap(start time.Time, head store.Record, now timeline.Interval) bool {
	return start.After(head.WindowEnd) && now.Earliest.Before(head.WindowEnd)
}

// mayExtend is true of a holder that has neither released its term, nor lost it to a
// reset or an override, nor surely come to its end.
func mayExtend(head store.Record, now timeline.Interval) bool {
	return head.Kind != store.KindRelease && !ledger.Supersedes(head) && now.Earliest.Before(head.WindowEnd)
}

// token grows from term to term. It is a time, so it does not start again in a ledger
// that was trimmed, idle or dropped.
func token(start time.Time, head store.Record) int64 {
	return max(start.UnixMilli(), head.Token+1)
}

// resend changes nothing. The same record at the same key can be stored only once,
// however often it is sent; and the claim keeps the age it got when it was fixed, before
// its head was read.
func resend(c Claim, sent store.Record, _ Moment) (Claim, store.Record) { return c, sent }

// term goes by the record, never by one's own options: its writer may have another
// schedule.
func term(r store.Record, own bool, slot slots.Slot) Term {
	if !own && r.SlotStart.Before(r.SlotEnd) {
		slot = slots.Slot{Start: r.SlotStart, End: r.SlotEnd}
	}
	return Term{
		Seq: r.Seq, Kind: r.Kind, Slot: slot, Start: r.WindowStart, End: r.WindowEnd,
		Token: r.Token, Attempt: r.Attempt, Spared: r.Spared, Claim: r.Claim, Own: own,
	}
}

// extend goes on with a term of one's own that the head says is still in force. A
// release has ended it, whoever sent it; bookkeeping has not.
func extend(t Term, head store.Record, _ Identity) bool {
	return t.Claim != "" && head.Claim == t.Claim && head.Kind != store.KindRelease
}

// prolong extends only the term that is held. A term that was left meanwhile has ended by
// the worker's clock, or its code has ended, and others go by its record.
func prolong(held Term, extension store.Record) bool { return extension.Claim == held.Claim }

// releasable is only the term of one's own claim, and only once. A group's never is:
// other members may work under it.
func releasable(head store.Record, id Identity) bool {
	return id.Group == "" && id.Claim != "" && head.Claim == id.Claim && head.Kind != store.KindRelease
}

// releaseAt is after every moment at which the term can have been worked under, and after
// its start: a release of the next slot frees nothing of the slot before, which another
// worker may hold.
func releaseAt(head store.Record, now timeline.Interval) time.Time {
	return later(ceil(now.Latest), store.FromMillis(head.Token+1))
}

// resume never does. When the term was left, its window had ended by the worker's clock, or
// that had jumped, and others go by it. And absent is not failed: a release that was sent may
// be stored at any time, and a worker that reads it begins at once.
func resume(Term, store.Record) bool { return false }

// ReadAt is the latest moment at which the head can have been read: all records before it
// were in the ledger by then.
func ReadAt(now timeline.Interval) time.Time { return ceil(now.Latest) }

// trimBelow opens no key that a worker may still be about to append to. A worker that
// appends to a key has read the record before it, when its own was not there yet.
// Everything below r was in the ledger by r.ReadAt. So such a claim was fixed before
// r.ReadAt, and one retention later it is too old to be worked under. The age of the
// records below proves nothing: they may have been stored late.
func trimBelow(r store.Record, now timeline.Interval, retention time.Duration) int64 {
	if r.CheckEnvelope() != nil || r.ReadAt.IsZero() || now.Earliest.Before(r.ReadAt.Add(retention)) {
		return 0
	}
	return r.Seq
}
