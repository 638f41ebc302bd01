package machine

import (
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// judge decides what the head means for the claim. The zero Record stands for
// an empty ledger; below are older records, if they were read.
func (x *step) judge(head store.Record, below []store.Record) {
	s, now := &x.s, x.at.Now
	if x.aged() {
		x.expireClaim()
		return
	}
	if why := x.poison(head); why != nil {
		x.watch(head, below, why)
		return
	}
	s.Watch = Watch{}
	x.observeRecord(head)
	x.compare(head)
	if x.closeSlot(head) {
		return
	}
	if s.Claim.ID == "" {
		s.Stage = Aiming // It was read to close a slot, and there is nothing to tell.
		return
	}
	if x.extend(head) {
		return
	}
	if head.Kind == store.KindGrant {
		switch {
		case x.m.Rules.Mine(head, x.m.identity(s.Claim.ID)):
			x.confirm(head, true)
			return
		case x.kin(head):
			x.confirm(head, false)
			return
		case head.WindowEnd.After(s.Slot.Start) && x.freed(s.VoidClaim) && x.release(head, s.VoidClaim):
			return // one's own, but void, and in the way
		}
	}
	if s.JoinOnly {
		x.next()
		return
	}
	if x.closed(head) || x.undecided() {
		return
	}
	start := x.m.Rules.Start(s.Claim, head)
	if !x.worth(start, s.Claim.End) {
		if head.WindowEnd.After(s.Slot.Start) {
			x.lose(head)
			return
		}
		x.miss(s.Slot.End)
		x.next()
		return
	}
	if x.mayExtend(start, head) {
		x.lose(head)
		return
	}
	if x.m.Rules.Gap(start, head, now) {
		s.drop()
		s.Turn, s.TurnEdge = head.WindowEnd, timeline.Earliest
		if x.m.Failover > 0 {
			s.Turn = s.Turn.Add(x.turn(false)) // All come at once.
		}
		return
	}
	if soon := start.Add(-x.m.Rules.Ahead / 2); now.Earliest.Before(soon) {
		// The head ends late in the slot, or the time is quite uncertain: a claim so
		// far ahead could be poison to others. Come again nearer to it.
		s.drop()
		s.Turn, s.TurnEdge = soon, timeline.Earliest
		return
	}
	s.Sent = x.grant(head, start)
	s.Stage = Sending
}

// worth reports whether a window would leave any time to work.
func (x *step) worth(start, end time.Time) bool {
	if start.Before(x.at.Now.Earliest) {
		start = x.at.Now.Earliest
	}
	return start.Add(2*x.at.Now.Uncertainty() + x.m.Margin + 2*time.Millisecond).Before(end)
}

// kin reports whether the head is a grant of one's own group that is of use
// here: it reaches into the slot, is not over, and is not held already.
func (x *step) kin(head store.Record) bool {
	return x.m.Rules.Kin(head, x.m.identity("")) &&
		head.WindowEnd.After(x.s.Slot.Start) &&
		!x.m.Rules.over(x.at.Now, head.WindowEnd, x.m.Margin) &&
		head.Claim != x.s.Held.Claim && head.Claim != x.s.Left.Claim
}

// compare tells of a head that was written under another schedule.
func (x *step) compare(head store.Record) {
	s := &x.s
	theirs := head.Schedule
	if head.Kind == store.KindGrant && theirs != "" && theirs != x.m.Schedule.String() && theirs != s.Mismatch {
		s.Mismatch = theirs
		x.note(Note{What: Mismatch, Slot: s.Slot, Record: head})
	}
}

// grant makes the record that claims the window from start to the claim's end.
func (x *step) grant(head store.Record, start time.Time) store.Record {
	r := x.stamped(store.KindGrant, head.Seq+1)
	r.Claim = x.s.Claim.ID
	r.Group = x.m.Group
	r.WindowStart, r.WindowEnd = start, x.s.Claim.End
	r.Token = x.m.Rules.Token(start, head)
	r.FixedAt = x.s.Claim.Fixed.Truncate(time.Millisecond)
	r.Metadata = x.m.Metadata
	if r.Attempt = 0; x.m.Once {
		r.Attempt = x.s.attempt(x.s.Slot)
		if x.s.Late = x.missed(x.s.Slot); !x.s.Late.IsZero() {
			r.DoneUntil = x.s.Late.End // It is begun once more, by this grant, and never again.
		}
	}
	return r
}

// stamped is a record with what all records of this worker have in common.
func (x *step) stamped(k store.Kind, seq int64) store.Record {
	return store.Record{
		WorkerType: x.m.WorkerType, Seq: seq, Kind: k,
		InstanceID: x.m.InstanceID, Priority: x.m.Priority,
		SlotStart: x.s.Slot.Start, SlotEnd: x.s.Slot.End,
		Schedule: x.m.Schedule.String(),
		FixedAt:  x.at.Now.Earliest.Truncate(time.Millisecond), ReadAt: x.s.ReadAt,
		DoneUntil: x.s.Carried.DoneUntil, Attempt: x.s.Carried.Attempt,
		Worker: x.m.Worker,
	}
}

// confirm takes a grant that is known to be one's own, or one's group's.
func (x *step) confirm(r store.Record, own bool) {
	s := &x.s
	if x.aged() {
		x.expireClaim()
		return
	}
	if own && (r.Claim == s.Held.Claim || r.Claim == s.Left.Claim) {
		x.extended(r)
		return
	}
	x.observeRecord(r)
	s.Next = x.m.Rules.Term(r, own, s.Slot)
	s.WonSlot = s.Slot.End
	if own && r.DoneUntil.Equal(s.Late.End) {
		s.Next.Missed = s.Late
	}
	s.WonEnd = s.Next.End
	what := Claimed
	if !own {
		what = Joined
	}
	x.note(Note{What: what, Slot: s.Next.Slot, Record: r})
	x.rememberGrant(r, own)
	if s.Stopping {
		s.drop()
		return
	}
	x.scheduleNext()
}
