package verify

import (
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// obeyed looks at a record that workers obey, and at the one that was in force below it, v.head.
func (v *Verifier) obeyed(r store.Record) {
	grant, extends := r.Kind == store.KindGrant, v.head.Seq != 0 && r.Claim == v.head.Claim
	if grant {
		if v.report.Grants++; !extends {
			v.report.Terms++
		}
	}
	v.claim(r, extends)
	v.afterRelease(r, extends)
	v.bookkeeping(r)
	v.clock(r, extends)
	v.done(r, extends)
	v.slots.gaps.Hear(r)
	v.slots.said(v, r)
	v.losses.obeyed(v, r)
	switch r.Kind {
	case store.KindGrant:
		v.slots.grant(v, r, extends)
	case store.KindRelease, store.KindOverride:
		v.slots.frees(r)
	case store.KindReset, store.KindDone, store.KindOutcome, store.KindOrder, store.KindSighting:
	}
}

// afterRelease sees that a term which was released is not gone on with. Workers don't see that if
// something was said in between: to them, that shows a term up to the release.
func (v *Verifier) afterRelease(r store.Record, extends bool) {
	if extends && r.Kind == store.KindGrant && v.released != 0 {
		v.find(ExtensionReleased, r, "It goes on with a term that record %d has released.", v.released)
	}
	switch {
	case r.Kind == store.KindRelease:
		v.released = r.Seq
	case !extends || r.Kind == store.KindGrant:
		v.released = 0
	}
}

// claims remembers the newest claims.
type claims struct {
	at    map[string]int64
	order []string
	next  int
}

func newClaims() claims { return claims{at: map[string]int64{}} }

// claim sees that a claim begins one term: to its worker, each record with it is its own.
func (v *Verifier) claim(r store.Record, extends bool) {
	c := &v.claims
	if extends {
		return
	}
	if seq, used := c.at[r.Claim]; used {
		v.find(ClaimReused, r, "The record has the claim of record %d, whose term was followed by another.", seq)
	} else if len(c.order) < remembered {
		c.order = append(c.order, r.Claim)
	} else {
		delete(c.at, c.order[c.next])
		c.order[c.next] = r.Claim
		c.next = (c.next + 1) % remembered
	}
	c.at[r.Claim] = r.Seq
}

// bookkeeping sees that a record which grants nothing leaves the holder as it is. That it leaves the
// term as it is shows before.
func (v *Verifier) bookkeeping(r store.Record) {
	switch r.Kind {
	case store.KindGrant, store.KindRelease, store.KindReset, store.KindOverride:
		return
	case store.KindDone, store.KindOutcome, store.KindOrder, store.KindSighting:
	default:
		v.find(UnknownKind, r, "The record is of the kind %q, which this version doesn't know.", string(r.Kind))
	}
	if v.head.Seq != 0 && v.head.Seq+1 == r.Seq && r.InstanceID != v.head.InstanceID {
		v.find(ChangesHolder, r, "The record grants nothing, and names another holder than record %d.", v.head.Seq)
	}
}

// clock sees that times of writers agree. What a worker appends to its own term may have older
// times: it doesn't always read the head again.
func (v *Verifier) clock(r store.Record, extends bool) {
	late := v.latest.Add(v.slack())
	switch head := v.head; {
	case r.ReadAt.After(late) || r.FixedAt.After(late):
		v.find(WrittenAhead, r, "The record was written at %s, which is yet to come.", store.Format(later(r.ReadAt, r.FixedAt)))
	case extends || r.ReadAt.IsZero():
	case head.Seq != 0 && r.ReadAt.Before(head.FixedAt.Add(-v.slack())):
		v.find(ReadBeforeWritten, r, "Its writer read the ledger at %s, before record %d was written at %s.", store.Format(r.ReadAt), head.Seq, store.Format(head.FixedAt))
	}
	if r.Kind != store.KindGrant || r.FixedAt.IsZero() {
		return
	}
	if !r.ReadAt.IsZero() && r.ReadAt.Before(r.FixedAt.Add(-v.slack())) {
		v.find(ReadBeforeFixed, r, "Its claim was fixed at %s, after its writer read the ledger at %s.", store.Format(r.FixedAt), store.Format(r.ReadAt))
	}
	if !extends && r.FixedAt.After(r.WindowStart.Add(v.slack())) {
		v.find(FixedAfterStart, r, "Its claim was fixed at %s, after its window starts at %s.", store.Format(r.FixedAt), store.Format(r.WindowStart))
	}
}

// done sees that what is done stays so. A holder may extend its term while it records what is done.
func (v *Verifier) done(r store.Record, extends bool) {
	head := v.head
	if head.DoneUntil.IsZero() || r.Kind == store.KindOverride {
		return
	}
	// Workers drop what no worker can have written.
	if head.DoneUntil.After(v.latest.Add(ledger.Longest)) {
		return
	}
	if r.DoneUntil.Before(head.DoneUntil) {
		v.find(DoneGoesBack, r, "Slots are done until %s by the record, and until %s by record %d.", doneText(r), doneText(head), head.Seq)
	}
	now, _ := store.ParseDone(r.Done)
	if was, _ := store.ParseDone(head.Done); now.Start.Before(was.Start) && now.Start.Add(now.Offset).Before(was.Start.Add(was.Offset)) && !now.IsZero() {
		v.find(DoneGoesBack, r, "The newest slot that is done starts at %s by the record, and at %s by record %d.", store.Format(now.Start), store.Format(was.Start), head.Seq)
	}
	if r.Triggered() {
		if r.Kind == store.KindGrant && !extends && !store.Triggers(head.Orders, r.SlotStart) {
			v.find(GrantAfterDone, r, "The record grants the run that was asked for at %s, and record %d has no such order any more.", store.Format(r.SlotStart), head.Seq)
		}
		return
	}
	isDone := machine.Standard.IsDone(machine.Standard.Carry(head), slots.Slot{Start: r.SlotStart, End: r.SlotEnd}, v.slots.scheduleOf(r))
	if r.Kind == store.KindGrant && !extends && r.Attempt > 0 && r.SlotStart.Before(r.SlotEnd) && isDone {
		v.find(GrantAfterDone, r, "The record grants the slot that starts at %s, which was done by record %d.", store.Format(r.SlotStart), head.Seq)
	}
}

func doneText(r store.Record) string {
	if r.DoneUntil.IsZero() {
		return "no time"
	}
	return store.Format(r.DoneUntil)
}

// blocked sees whether the newest record leaves nothing to claim for long.
func (v *Verifier) blocked() {
	until := v.head.WindowEnd
	if done := v.head.DoneBefore(); v.slots.jobs && done.After(until) {
		until = done
	}
	if v.head.Seq != 0 && until.After(machine.BlocksAfter(v.head, nil, v.o.Now)) {
		v.find(BlockedLong, v.head, "The record leaves nothing to claim until %s.", store.Format(until))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
