package machine

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// Notes are records that change no term: orders, outcomes, and that a slot is done. Workers and operators append any number
// of them to the term in force. Each repeats that term, so the head alone shows it, however far down its grant is.

// notes reports that records of a kind change no term.
func notes(k store.Kind) bool {
	return k == store.KindOrder || k == store.KindOutcome || k == store.KindDone
}

// repeat changes no term: the holder of the one in the head goes on holding it, or has given it back.
func repeat(r, head store.Record) store.Record {
	r.Claim, r.InstanceID, r.Group, r.Token, r.Priority = head.Claim, head.InstanceID, head.Group, head.Token, head.Priority
	r.SlotStart, r.SlotEnd, r.Schedule = head.SlotStart, head.SlotEnd, head.Schedule
	r.WindowStart, r.WindowEnd = head.WindowEnd, head.WindowEnd
	r.Attempt, r.Spared = head.Attempt, head.Spared
	if head.Kind == store.KindRelease && head.WindowEnd.After(head.SlotStart) {
		r.SlotEnd = head.WindowEnd // Nobody extends it: what is left is no part of a slot any more.
	}
	return r
}

// givenBack reads what repeat writes. A note says the same of a term that has ended with its slot by itself, which does no
// harm: nothing of the slot is left.
func givenBack(head store.Record) bool {
	ends := head.SlotStart.Before(head.SlotEnd) && head.SlotEnd.Equal(head.WindowEnd)
	return head.Kind == store.KindRelease || notes(head.Kind) && ends
}

// granted goes by what a note repeats, which is all but the beginning of the term. That was at its token at the latest,
// so nobody begins too early.
func granted(head store.Record) (grant store.Record, ok bool) {
	if notes(head.Kind) && head.Claim != "" {
		head.Kind, head.WindowStart = store.KindGrant, store.FromMillis(head.Token)
		head.FixedAt, head.Worker, head.Metadata = time.Time{}, store.Worker{}, "" // Those are of who wrote the note.
	}
	return head, head.Kind == store.KindGrant && head.WindowStart.Before(head.WindowEnd)
}

// closed reports that the slot of a head is done by what was said since it was granted.
func (f facts) closed(head store.Record) bool {
	return f.m.Once && head.Kind != store.KindGrant && f.m.doneIn(f.s.View.Carried, head)
}

// joins reports that a grant is one's own group's, and that no order keeps its members from work.
func (f facts) joins(grant store.Record) bool {
	return f.joinable(grant) && grant.Claim != f.s.Hold.Next.Claim && f.stoppedBy(Term{Seq: grant.Seq, Claim: grant.Claim}) == 0
}
