package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// This file is how a worker notices that the store has lost records which it had acknowledged: by the
// newest record that the worker has read or appended, by the answer to an append, and by the name of the
// store's history. Others may work under what was lost, and nobody can read it any more. So it waits.

// Known is the newest record that the worker knows to have been in the ledger.
type Known struct {
	Seq        int64 // 0: none is known
	Kind       store.Kind
	Claim      string
	InstanceID string
	Group      string
	Start, End time.Time // of its term, as far as that was read; Start may be unknown
	Token      int64
	Part       time.Duration // the longest window of late
	PartAt     time.Time     // when that began
}

// at reports that a record that can be read stands at the same key, and is that it is the very one.
func (k Known) at(r store.Record) bool { return k.Seq != 0 && r.Seq == k.Seq && r.Defect == "" }

func (k Known) is(r store.Record) bool {
	return store.SameRecord(r, store.Record{Kind: k.Kind, Claim: k.Claim, InstanceID: k.InstanceID})
}

// Loss is what the worker knows of records that the store has lost.
type Loss struct {
	Was    Known     // the newest record known, which is gone; Seq 0: nothing is, as far as is known
	Until  time.Time // when all that may have been granted by what was lost is over
	Proven bool      // it isn't that a read was stale
	Looks  int       // reads that have not shown the record
	Told   bool
}

// Knowing are the ways in which a worker sees to it that the ledger is still the one it knows. Breaking
// them shows as two holders after the store has lost records.
type Knowing int

// The ways.
const (
	// ByAppend: an append names the record below it, where the store compares that.
	ByAppend Knowing = 1 << iota
	// ByRead: of other stores, the head is read before each extension.
	ByRead
	// ByMemory: nothing is claimed while the newest record that was read is gone.
	ByMemory
	// ByHistory: nor after a change of the history, until all is over that may have been granted unseen.
	ByHistory
)

// outlived is when nobody works any more under records that were lost: one is known, and its window ends at
// end; others may not have been read, and none of them begins after begins, or the end of the one that is
// known. No window is longer than part.
func outlived(end, begins time.Time, part time.Duration) time.Time {
	return later(end, begins).Add(part)
}

// unseen is how long a window can end after those that lie before it, and when the newest that may have been
// granted unseen begins: it is extended, or claimed, so long before. Slots may be longer than the present one.
func (f facts) unseen() (part time.Duration, begins time.Time) {
	part, begins = f.m.Failover, f.at.Now.Latest.Add(max(f.aheadOfSlot(), f.m.early()))
	if part == 0 {
		newest := f.m.Schedule.At(later(f.s.View.Known.End, begins))
		part = max(f.m.Schedule.At(f.at.Now.Mid()).Length(), newest.Length())
	}
	return min(max(part, f.s.View.Known.Part), ledger.LongestSpan), begins
}

// aheadOfSlot is how long before a slot others may append what grants it: a lead, and a step, in which a lease goes on into it that
// doesn't fail back.
func (f facts) aheadOfSlot() time.Duration {
	return f.m.lead(f.m.Schedule.Next(f.at.Now.Mid())) * 5 / 4
}

// above raises the token of a head to that of a record that was lost, so that those of new terms are higher; unless it
// is so far ahead that a record with it would be poison.
func (f facts) above(head store.Record) store.Record {
	if floor := f.s.View.Floor; floor <= f.at.Now.Latest.UnixMilli() {
		head.Token = max(head.Token, floor)
	}
	return head
}

// know remembers a record that can be obeyed, and is in the ledger.
func (x *step) know(r store.Record) {
	k := &x.s.View.Known
	if r.Seq == 0 || r.Seq < k.Seq {
		return
	}
	if r.Claim != k.Claim {
		k.Start = time.Time{}
	}
	if k.Start.IsZero() && r.WindowStart.Before(r.WindowEnd) {
		k.Start = r.WindowStart
	}
	k.Seq, k.Kind, k.Claim, k.InstanceID, k.Group, k.End, k.Token = r.Seq, r.Kind, r.Claim, r.InstanceID, r.Group, r.WindowEnd, r.Token
	if length := r.WindowEnd.Sub(r.WindowStart); length >= k.Part || r.WindowStart.After(k.PartAt.Add(2*k.Part)) {
		k.Part, k.PartAt = length, r.WindowStart
	}
}

// reaches takes in since when the term of the record that is known lasts, as far as those below it show.
func (k *Known) reaches(below []store.Record) {
	for _, r := range below {
		if r.Claim == k.Claim && r.Kind == store.KindGrant && r.Defect == "" && (k.Start.IsZero() || r.WindowStart.Before(k.Start)) {
			k.Start = r.WindowStart
		}
	}
}

// hidesKnown has more records read if the newest don't reach down to the one that is remembered, and its holder may
// still work; or to one that is gone, unless the read was stale. Records of its term show that it was there.
func (x *step) hidesKnown(records []store.Record) bool {
	v := &x.s.View
	k, gone := v.Known, v.Loss.Was.Seq != 0
	if gone {
		k = v.Loss.Was
	}
	if x.m.Rules.Knows&ByMemory == 0 || x.s.Hold.Looking || k.Seq == 0 || v.Asked >= lookBack || len(records) < v.Asked ||
		records[len(records)-1].Seq <= k.Seq || !gone && !x.at.Now.Earliest.Before(k.End.Add(k.Part)) {
		return false
	}
	if !gone && slices.ContainsFunc(records, func(r store.Record) bool { return r.Claim == k.Claim }) {
		return false
	}
	v.Depth = lookBack
	return true
}

// compare notices whether the newest record that is known is still in the ledger, and when what follows from its loss
// is over.
func (x *step) compare(records []store.Record) {
	v, now := &x.s.View, x.at.Now
	l := &v.Loss
	if x.m.Rules.Knows&ByMemory == 0 {
		return
	}
	if slices.ContainsFunc(records, func(r store.Record) bool { return l.Was.at(r) && l.Was.is(r) }) {
		v.Known, *l = l.Was, Loss{} // The read that lacked it was stale.
	}
	x.s.Missing.found(records)
	k := v.Known
	other := slices.ContainsFunc(records, func(r store.Record) bool { return k.at(r) && !k.is(r) })
	if k.Seq != 0 && (other || len(records) == 0 || records[0].Seq < k.Seq) {
		x.gone(other)
	}
	for _, r := range records {
		if r.Kind == store.KindOverride && r.Token > l.Was.Token {
			l.Until = now.Earliest // An operator has said since that nobody works.
		}
		if r.Kind == store.KindOverride && r.WindowStart.After(v.Renamed) {
			v.Unsure = time.Time{}
		}
	}
	if l.Was.Seq != 0 && now.Known() && !now.Earliest.Before(l.Until) {
		*l = Loss{} // It goes on from the head that is there.
	}
}

// gone takes in that the newest record known is not in the ledger. What is there is the newest known from now on: it may
// be lost, too.
func (x *step) gone(proven bool) {
	v, h := &x.s.View, &x.s.Hold
	l, k := &v.Loss, v.Known
	part, begins := x.unseen()
	if l.Was.Seq == 0 {
		*l = Loss{Was: k}
	}
	l.Until, l.Proven = later(l.Until, x.m.Rules.Outlived(k.End, begins, part)), l.Proven || proven
	v.Floor, v.Known.Seq = max(v.Floor, k.Token), 0
	if t := h.Next; l.Proven && t.Own && t.Seq == k.Seq && t.Claim == k.Claim {
		x.note(Note{What: Missed, Slot: t.Slot, Until: t.Slot.End, Why: WentBack})
		x.s.Bid.VoidClaim, h.Next = t.Claim, Term{}
	}
}

// refusedAbove takes in that the record below the one that was sent isn't in the ledger.
func (x *step) refusedAbove(err error) {
	s := x.s
	if x.m.Rules.Knows&ByMemory != 0 && s.View.Known.Seq == s.Bid.Below.Seq && s.View.Known.is(s.Bid.Below) {
		x.gone(true)
	}
	if s.Bid.OutcomeUnknown && s.Bid.grants() {
		s.Bid.VoidClaim = s.Bid.Record.Claim // It was sent before.
	}
	s.Bid.OutcomeUnknown = false
	x.note(Note{What: Failed, Op: Appending, Err: err})
	x.reread()
	x.lookAgain()
}

// history takes notice of another name of the store's history. What this worker has read last may have been followed by
// what others appended until then, and nobody can read that. While nothing could be appended yet, because the window that
// was read lasts for long enough, that is nothing.
func (x *step) history() {
	v, now := &x.s.View, x.at.Now
	was, name := v.History, x.at.History
	if name == "" || name == was || !now.Known() {
		return
	}
	v.History = name
	if was == "" || x.m.Rules.Knows&ByHistory == 0 {
		return
	}
	part, begins := x.unseen()
	var until time.Time
	if !begins.Before(v.Known.End) {
		until = x.m.Rules.Outlived(v.Known.End, begins, part)
		v.Unsure, v.Renamed = later(v.Unsure, until), now.Latest
	}
	x.note(Note{What: Forgot, Slot: x.s.Bid.Slot, Until: until, Err: fmt.Errorf(
		"the store goes on with another history, %.80q after %.80q: records may be lost that it had acknowledged", name, was)})
}

// nameBy is the local reading at which to ask for the name of the history, if the store has one, in time before others may append
// what grants the next slot: so a change that came before, in a long slot, costs nothing. The sample serves the claim, too, of a
// worker whose turn comes soon. 0: it is known.
func (f facts) nameBy() time.Duration {
	now, next := f.at.Now, f.m.Schedule.Next(f.at.Now.Mid())
	if f.s.View.History == "" || f.m.Rules.Knows&ByHistory == 0 || !now.Known() {
		return 0
	}
	ahead := f.aheadOfSlot()
	due := next.Start.Add(-ahead - ahead/4)
	switch since := now.Mid().Sub(due); {
	case since < 0:
		return f.at.Local + now.Until(due, timeline.Mid)
	case f.at.Age <= since || since > ahead/4:
		return 0 // It is known as of then, or it is too late.
	default:
		return f.at.Local
	}
}

// mostLooks is how many reads in a row must lack the record before that is no stale read.
const mostLooks = 3

// unsure reports that records were lost, or may be, under which others may yet work.
func (f facts) unsure() bool {
	v := &f.s.View
	return v.Loss.Was.Seq != 0 || f.at.Now.Earliest.Before(v.Unsure)
}

// mayGoOn reports that the term in the head may be extended although records may be lost: within its slot
// nobody could append anything above it while it lasted.
func (f facts) mayGoOn(head store.Record) bool {
	return f.s.View.Loss.Was.Seq == 0 && f.goesOn(head) && !f.intoNext()
}

// standBack claims and extends nothing until all that may have been granted by lost records is over.
func (x *step) standBack(head store.Record) {
	s, b, l := x.s, &x.s.Bid, &x.s.View.Loss
	over := later(s.View.Unsure, l.Until)
	if l.Was.Seq != 0 && !x.acceptLoss(head, over) {
		b.Stage = Reading
		x.lookAgain()
		return
	}
	leaves := x.m.opens(x.m.Schedule.Next(b.Slot.Start))
	switch intoNext := x.intoNext(); {
	case b.Role == Joiner || x.m.Single || b.skips():
	case b.Role == Claimant || b.Role == Extender && intoNext:
		b.Role, leaves = Claimant, x.m.abandoned(b.Slot)
	case x.m.Failover == 0:
		leaves = time.Time{}
	default:
		b.Role = Standby
	}
	if b.Role == Joiner || x.m.Single || b.skips() || !over.Before(leaves) {
		b.MissReason = WentBack
		x.miss(b.Slot.End)
		x.next()
		return
	}
	b.wait(later(over, b.Slot.Start).Add(x.turn(false)), timeline.Earliest)
	b.MissReason = WentBack // should the slot be missed yet
}

// acceptLoss reports that a record is gone, since it isn't that a read was stale. Then it tells that once, and stops
// working if another worker, that knows nothing of this one's lease, has it.
func (x *step) acceptLoss(head store.Record, over time.Time) bool {
	s, l := x.s, &x.s.View.Loss
	if l.Looks++; l.Looks < mostLooks && !l.Proven {
		return false
	}
	if !l.Told {
		l.Told = true
		x.reportMissing(l.Was, x.at.Local+x.at.Now.Until(over, timeline.Earliest))
		x.note(Note{
			What: Forgot, Slot: s.Bid.Slot, Until: over, Record: store.Record{Seq: l.Was.Seq, InstanceID: l.Was.InstanceID, Claim: l.Was.Claim},
			Err: fmt.Errorf("record %d, of %.80q, is no longer in it, and the newest is %d: it was flushed, restored, or failed over to a copy that lacked it", l.Was.Seq, l.Was.InstanceID, head.Seq),
		})
	}
	if held := s.Hold.Held; !held.IsZero() && head.Kind == store.KindGrant && head.Token > held.Token && !s.Hold.knows(head.Claim) &&
		!x.m.Rules.Kin(head, x.m.identity("")) && head.WindowEnd.After(x.at.Now.Earliest) {
		x.expire(RecordVanished)
	}
	return true
}

// byRead reports that a look at the head must show the record below, since the store doesn't compare it.
func (f facts) byRead() bool { return f.m.Rules.Knows&ByRead != 0 && !f.m.Follows }

// looksBelow reports that the head is to be read before an extension: the store doesn't compare the record below, or has
// lost it, or may have lost what was appended above it.
func (f facts) looksBelow() bool {
	return f.byRead() || f.s.View.Loss.Was.Seq != 0 || f.unsure() && f.intoNext()
}
