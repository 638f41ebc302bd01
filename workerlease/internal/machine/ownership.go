package machine

import (
	"errors"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Identity is what a record is compared with to tell whose it is.
type Identity struct {
	Claim      string // the id of a claim
	InstanceID string
	Group      string
}

// Outcome is what is known of an append.
type Outcome int

// The outcomes.
const (
	// Landed: the record is in the ledger.
	Landed Outcome = iota
	// Taken: a record stands at its key. It may be the very one that was sent.
	Taken
	// Refused: the store will never take it.
	Refused
	// InDoubt: it may be in the ledger, or may yet land.
	OutcomeUnknown
)

// outcome takes no error for a failure: the reply may have been lost behind the
// effect, and what timed out may land later. Nor a conflict for a loss: drivers
// retry, and find what they wrote. Only reading the key back tells.
func outcome(err error) Outcome {
	switch {
	case err == nil:
		return Landed
	case errors.Is(err, store.ErrConflict):
		return Taken
	case errors.Is(err, store.ErrInvalid):
		return Refused
	default:
		return OutcomeUnknown
	}
}

// mine goes by the claim's random id alone. An InstanceID is a label: that of a
// worker which was restarted, or copied with its settings, has claims of its
// own.
func mine(r store.Record, id Identity) bool { return r.Claim == id.Claim }

// kin shares among those only who were put into a group on purpose.
func kin(r store.Record, id Identity) bool { return id.Group != "" && r.Group == id.Group }

// start never reaches back behind the end of the head, whoever holds it and
// whatever one's own slots are: this keeps windows disjoint.
func start(c Claim, head store.Record) time.Time { return later(c.Start, head.WindowEnd) }

// gap reports one behind a term that has surely not ended: its holder may
// extend it to where the grant would begin.
func gap(start time.Time, head store.Record, now timeline.Interval) bool {
	return start.After(head.WindowEnd) && now.Earliest.Before(head.WindowEnd)
}

// living is whoever has neither released its term, nor lost it to a reset, nor
// surely come to its end.
func mayExtend(head store.Record, now timeline.Interval) bool {
	return head.Kind != store.KindRelease && head.Kind != store.KindReset && now.Earliest.Before(head.WindowEnd)
}

// token grows from term to term. It is a time, so that it does not start
// again in a ledger that was trimmed, idle or dropped.
func token(start time.Time, head store.Record) int64 {
	return max(start.UnixMilli(), head.Token+1)
}

// resend changes nothing. The same record at the same key can land once only,
// however often it is sent; and the claim is as old as when it was fixed, before
// its head was read.
func resend(c Claim, sent store.Record, _ Moment) (Claim, store.Record) { return c, sent }

// term goes by what the record says, never by one's own options: the schedule
// of who wrote it may be another.
func term(r store.Record, own bool, slot slots.Slot) Term {
	if !own && r.SlotStart.Before(r.SlotEnd) {
		slot = slots.Slot{Start: r.SlotStart, End: r.SlotEnd}
	}
	return Term{
		Seq: r.Seq, Slot: slot, Start: r.WindowStart, End: r.WindowEnd,
		Token: r.Token, Attempt: r.Attempt, Claim: r.Claim, Own: own,
	}
}

// extend goes on with what the head says is still in force, and one's own. A
// release has ended it, whoever sent it, and bookkeeping hasn't.
func extend(t Term, head store.Record, _ Identity) bool {
	return t.Claim != "" && head.Claim == t.Claim && head.Kind != store.KindRelease
}

// prolong extends what is worked under alone: a term that was left meanwhile has
// ended by the worker's clock, or its code has, and others go by its record.
func prolong(held Term, extension store.Record) bool { return extension.Claim == held.Claim }

// takeUp never does: when the term was left, its window had ended by the worker's
// clock, or that had jumped, and others go by it.
func takeUp(Term, store.Record) bool { return false }

// releasable is the term of one's own claim alone, once. A group's never is:
// others may be at work under it.
func releasable(head store.Record, id Identity) bool {
	return id.Group == "" && id.Claim != "" && head.Claim == id.Claim && head.Kind != store.KindRelease
}

// releaseAt is behind every moment at which the term can have been worked
// under, and behind its start: a release of the next slot frees nothing of the
// one before, which somebody else may hold.
func releaseAt(head store.Record, now timeline.Interval) time.Time {
	return later(ceil(now.Latest), store.FromMillis(head.Token+1))
}

// resume never does: absent is not failed. A release that was sent may land at any
// time, and whoever reads it begins at once.
func resume(Term, store.Record) bool { return false }

// readAt is at the latest when the head was read: all records before it were in
// the ledger by then.
func readAt(now timeline.Interval) time.Time { return ceil(now.Latest) }

// trimBelow opens no key that anybody may still be about to append to. Who
// appends to a key has read the record before, when its own was not there yet.
// Everything below r was in the ledger by r.ReadAt. So such a claim was fixed
// before r.ReadAt, and one retention later it is too old to be worked under. The
// age of the records below tells nothing: they may have landed late.
func trimBelow(r store.Record, now timeline.Interval, retention time.Duration) int64 {
	if r.CheckEnvelope() != nil || r.ReadAt.IsZero() || now.Earliest.Before(r.ReadAt.Add(retention)) {
		return 0
	}
	return r.Seq
}
