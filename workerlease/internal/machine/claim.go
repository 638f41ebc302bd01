package machine

import (
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// contend goes on with the bid as far as it can without waiting: until a ledger
// operation is under way, or it is too early.
func (x *step) contend() {
	s := x.s
	if s.Pending != Nothing || x.backingOff() {
		return
	}
	if x.needsTime() {
		x.ask(Sampling, Sample{})
		return
	}
	if !x.m.through(s) {
		x.aim()
		if x.heed() {
			return
		}
	}
	if x.trim() {
		return
	}
	if x.due() && (s.Bid.Stage == Aiming || s.Bid.Stage == Reading && s.Bid.Claim.ID == "") {
		x.readHead()
		return
	}
	switch r := x.tells(); {
	case x.m.through(s):
	case r != nil:
		x.look(r)
	case x.listens(), x.arrives():
	default:
		x.bid()
	}
}

// needsTime reports that nothing goes on without a sample of the store's time.
func (x *step) needsTime() bool {
	s := x.s
	return !x.at.Now.Known() || x.at.Single && x.m.Rules.Samples&IfSingle != 0 || s.Clock.Resample > 0 && !x.recording() ||
		x.sampleDue() || s.Retries.SampleFirst || x.drifted()
}

// bid takes the next step of the bid. While the worker may claim nothing, it reads back what it has appended,
// which is no claim, and records that work is done.
func (x *step) bid() {
	b, blocked := &x.s.Bid, x.m.blocked(x.s)
	switch {
	case b.Stage == Checking:
		x.ask(ReadingRecord, ReadRecord{b.Record.Seq})
	case b.Stage == Sending && (!blocked || !b.grants()):
		x.send()
	case blocked:
	case b.Stage == Aiming:
		x.claim()
	case b.Stage == Reading:
		x.readHead()
	}
}

// aim sees to it that the bid is for the slot whose time it is.
func (x *step) aim() {
	s, mid := x.s, x.at.Now.Mid()
	x.abandonExtension()
	if s.Bid.Slot.IsZero() {
		x.enter()
		return
	}
	if x.reclaim() {
		return
	}
	if s.Bid.Recheck > 0 && x.at.Local >= s.Bid.Recheck {
		x.recheck()
	}
	if mid.Before(x.m.leaves(s)) || x.m.Single && s.Bid.Slot == s.Bid.First && mid.Before(s.Bid.Slot.End) {
		return // (A single claim takes the rest of its slot, however little, and no other.)
	}
	// The slot is given up. More may have passed meanwhile.
	next := x.m.Schedule.Next(s.Bid.Slot.Start)
	if now := x.m.Schedule.At(mid); next.Start.Before(now.Start) {
		next = now
	}
	if !mid.Before(x.m.abandoned(next)) {
		next = x.m.Schedule.Next(next.Start)
	}
	if !x.away(next.Start) {
		x.miss(next.Start)
	}
	x.target(next)
}

// recheck turns a bid that waits back to the slot whose time it is: a jump that was taken back may have turned
// it to a slot far ahead.
func (x *step) recheck() {
	s, mid := x.s, x.at.Now.Mid()
	s.Bid.Recheck = 0
	if s.Bid.Stage != Aiming {
		return
	}
	next := x.m.Schedule.At(mid)
	if s.Hold.WonEnd.IsZero() || next.Start.Before(s.Hold.WonEnd) || !mid.Before(x.m.abandoned(next)) {
		next = x.m.Schedule.Next(mid)
	}
	switch {
	case next.Start.Before(s.Bid.Slot.Start) && !next.Start.Before(s.Hold.WonEnd) && !next.Start.Equal(s.Bid.SkipSlot):
		x.target(next)
	case next == s.Bid.Slot && !s.Bid.Lands && s.Bid.Awaited == 0 && (s.Bid.Role == Claimant || s.Bid.Role == Standby):
		x.again() // Its turn counts from what the time was taken for, unless it waits for a record.
	}
}

// drifted reports that the slot in which the worker starts is not known well enough to
// aim: its client has had no worker for a while.
func (f facts) drifted() bool {
	return f.m.Rules.Samples&IfIdle != 0 && f.s.Bid.Slot.IsZero() && f.at.Age > freshToClaim(f.m.lead(f.m.Schedule.Next(f.at.Now.Mid())))
}

// enter begins with the slot in which the worker starts, or with the one after it. A fleet that starts
// at one time takes the slot in the order of the turns; a single claim is for now.
func (x *step) enter() {
	b, mid := &x.s.Bid, x.at.Now.Mid()
	entry, now := x.m.Rules.Entry(x.m.Joins, x.m.Group), x.m.Schedule.At(mid)
	if entry == AtOnce && !x.m.Single && !mid.Before(x.m.abandoned(now)) {
		entry = FromNext
	}
	b.Late, b.Came = now.Start, mid
	if x.m.Once && entry != FromNext && x.m.Rules.MayStart(mid, x.m.startBy(now)) {
		b.Late = now.Start.Add(-1) // It is there in time for this one.
	}
	if entry == FromNext {
		b.First = x.m.Schedule.Next(mid)
		x.target(b.First)
		return
	}
	b.First = now
	if entry == AtOnce && !x.m.Single {
		x.target(now)
		return
	}
	b.Slot = now
	if entry == AsMember {
		b.Role = Joiner
	}
	b.Turn, b.TurnEdge, b.Lands = mid, timeline.Mid, false
}

// arrives reads the head as soon as a worker is there that waits for a boundary: who holds the lease, what is due, or was missed, is
// known then. It does so once, if there is time before its turn.
func (x *step) arrives() bool {
	b, v := &x.s.Bid, &x.s.View
	if x.m.Single || v.Arrived || b.Stage != Aiming {
		return false
	}
	v.Arrived = true
	if !v.ReadAt.IsZero() || !x.at.Now.Mid().Before(b.First.Start) || !x.room(ReadingHead) {
		return false
	}
	x.s.Report.Looking = true // Nothing waits for it, so it may fail.
	x.readHead()
	return true
}

// arriving reports that the head was read for that.
func (x *step) arriving() bool {
	return x.telling == &x.s.Report && x.telling.Metadata == "" && x.s.Bid.Claim.ID == ""
}

// target turns to a slot. The worker's turn counts from the opening of claims or, if
// the slot has begun, from now.
func (x *step) target(slot slots.Slot) {
	s, now := x.s, x.at.Now
	s.Bid.drop()
	switch same := s.Bid.Slot == slot; {
	case same && (s.Bid.Role == Joiner || s.Bid.Role == Standby):
	case x.leads(slot):
		s.Bid.Role = Extender
	default:
		s.Bid.Role = Claimant
	}
	if s.Bid.Slot != slot {
		s.Bid.Outage, s.Bid.Awaited, s.Bid.Narrowed, s.Retries.Rereads = false, 0, false, 0
	}
	s.Bid.Slot, s.Bid.TurnEdge = slot, timeline.Mid
	s.Bid.Lands, s.Bid.Timed = now.Mid().Before(slot.Start), false
	mid, turns, turn := now.Mid(), x.turns(), x.turn(s.Hold.had(slot, x.m.Once))
	if s.Bid.Role == Extender {
		s.Bid.Turn = slot.Start.Add(-turns.Lead - turns.Step)
		return
	}
	if !mid.Before(slot.Start) {
		s.Bid.Turn = mid.Add(turn)
		return
	}
	s.Bid.Turn = slot.Start.Add(turn - turns.Lead)
	// After a long wait the middle may be far off: look at the time as early as
	// the turn may have come.
	grown := now.Uncertainty() + now.Drift(slot.Start.Sub(mid))
	if grown > turns.Lead/4 {
		s.Bid.TurnEdge = timeline.Latest
	}
}

// next turns to the slot after the bid's.
func (x *step) next() { x.target(x.m.Schedule.Next(x.s.Bid.Slot.Start)) }

// again turns to the same slot once more, with another claim.
func (x *step) again() { x.target(x.s.Bid.Slot) }

// contendLater contends for the bid's slot again, after two seconds or a slot at least: that takes a
// sample and a read, and the short waits with which each slot begins add to it.
func (x *step) contendLater() {
	x.again()
	x.lookAgain()
	x.s.Retries.Until = max(x.s.Retries.Until, x.at.Local+min(x.slotLength(), 2*time.Second))
}

// renewClaim gives up a claim that got too old, and begins another at once.
func (x *step) renewClaim() {
	x.s.Bid.void()
	x.again()
}

// turns is the turn schedule of the bid's slot. Its steps are wider if the time is
// uncertain, or if appends take now longer, now shorter. What each round trip takes doesn't
// count: claims are sent as much earlier. Nor does it count that nobody knows when, in its
// round trip, a sample was taken: a claim lands as much later as the time is taken for early.
func (f facts) turns() priority.Turns {
	uncertainty := f.at.Now.Uncertainty() - f.s.Trips.Reads.Least()/2
	spread := f.m.Rules.Spread(max(uncertainty, 0), max(f.s.Bid.Latency-f.s.Trips.Appends.Least(), 0))
	return priority.NewTurns(f.m.lead(f.s.Bid.Slot), f.m.Config.Step, spread)
}

// turn is how long after the opening of claims this worker may claim; held reports
// that it had what comes before.
func (f facts) turn(held bool) time.Duration { return f.turnIn(f.turns(), held) }

// turnDraw is what decides the place within a turn.
func (f facts) turnDraw() uint64 { return binary.LittleEndian.Uint64(f.at.Draw[:8]) }

// claim fixes the claim and reads the head once the turn has come, by a fresh
// estimate of the time, or as long before as it takes for the claim to land at the turn.
func (x *step) claim() {
	s, now := x.s, x.at.Now
	if now.At(s.Bid.TurnEdge).Before(x.m.begins(s)) {
		return
	}
	if s.extends() {
		x.extendNow()
		return
	}
	if x.waitsForAnswer() || x.looksLater() {
		return
	}
	if x.at.Age > freshToClaim(x.m.lead(s.Bid.Slot)) {
		x.ask(Sampling, Sample{})
		return
	}
	if s.Bid.TurnEdge == timeline.Latest || s.Bid.Lands {
		s.Bid.TurnEdge, s.Bid.Timed = timeline.Mid, true
		if now.Mid().Before(x.m.begins(s)) {
			return
		}
	}
	start := later(s.Bid.Slot.Start, ceil(now.Latest))
	s.Bid.Claim = Claim{
		ID:    x.id(),
		Start: start,
		End:   x.m.windowEnd(s.Bid.Slot, start),
		Fixed: now.Earliest,
		Local: x.at.Local,
		Epoch: x.at.Epoch,
	}
	x.readHead()
}

// extends reports that the bid goes on with the lease that is held.
func (s *State) extends() bool {
	return s.Bid.Role == Extender && s.Hold.Held.End.After(s.Bid.Slot.Start)
}

// id is a draw of 128 bits.
func (f facts) id() string { return hex.EncodeToString(f.at.Draw[:]) }

// readHead reads the newest record, the one below it, which shows whether a worker can have
// appended it, and as many before that as are needed.
func (x *step) readHead() {
	s := x.s
	limit := max(2, s.View.Depth)
	if s.View.Watch.Seq != 0 || s.Clock.unsettled() || s.Report.Looking && s.Report.Key != 0 || s.Death.Looking || s.Missing.Looking {
		// to find what is below the poison, what others may hold by another clock, what was sent, or what is not to be told after all
		limit = max(limit, lookBack)
	}
	s.View.Asked, s.Hint.Heard, s.Hint.Timed = limit, false, false
	s.Bid.Stage, s.Bid.ReadEpoch = Reading, s.Clock.Epoch
	x.ask(ReadingHead, ReadHead{limit})
}

// miss reports that the bid's slot, and all up to until, were missed, unless the first is
// not the worker's to miss.
func (x *step) miss(until time.Time) {
	s := x.s
	slot := s.Bid.Slot
	if s.Bid.Role != Claimant && (x.m.Single || !s.Hold.WonSlot.Equal(slot.End)) {
		return // It stood by, and others may have the slots that it knows nothing of.
	}
	tried := x.m.Once && s.View.Carried.attempt(slot) > 1
	if s.Bid.Role != Claimant || !x.m.Single && (tried || !slot.Start.After(s.Bid.Late)) {
		if slot = x.m.Schedule.Next(slot.Start); !slot.Start.Before(until) {
			return // It had it, or another one, or it only came too late for it, or an order keeps it from what was begun.
		}
	}
	x.passOver(slot, until, x.whyMissed())
}

// tellMissed reports slots that were missed; those of a job once: what follows the newest that was told.
func (x *step) tellMissed(slot slots.Slot, until time.Time, why Reason) {
	if told := x.s.View.Missed; x.m.Once && !slot.Start.After(told) {
		if slot = x.m.Schedule.Next(told); !slot.Start.Before(until) {
			return
		}
	}
	x.toldOf(slot.Start, x.m.Schedule.At(until.Add(-1)).Start)
	x.note(Note{What: Missed, Slot: slot, Until: until, Why: why})
}

// toldOf notes that slots were reported, by the starts of the first and the last one.
func (x *step) toldOf(first, last time.Time) {
	v := &x.s.View
	if !v.Missed.After(x.seen()) {
		v.MissedFrom = first
	}
	v.Missed = later(v.Missed, last)
}

// whyMissed is why the bid's slot is missed.
func (f facts) whyMissed() Reason {
	s := f.s
	switch why := s.Bid.MissReason; {
	case s.Hold.overrunning() && s.Hold.Overran, s.Triggers.Beside:
		return Overrunning
	case why != 0:
		return why
	case s.Retries.Failures > 0:
		return s.Retries.why()
	case f.m.unfitFor(s, Claiming), f.m.Checks && s.Eligibility.Looked.Equal(s.Bid.Slot.Start):
		return Ineligible
	case s.Bid.Outage && f.pastStart():
		return Unreachable
	}
	return TooLate
}

// scheduleNext turns to what comes after a window of one's own: the next window of
// the slot, or the next slot.
func (x *step) scheduleNext() {
	s := x.s
	t := s.Hold.newest()
	if x.m.Failover > 0 && t.End.After(s.Bid.Slot.Start) && t.End.Before(s.Bid.Slot.End) {
		s.Bid.Role = Extender
		s.Bid.wait(t.End.Add(-x.m.early()), timeline.Latest)
		return
	}
	next := x.m.Schedule.Next(s.Bid.Slot.Start)
	if end := x.m.Schedule.At(s.Hold.WonEnd); next.Start.Before(end.Start) {
		next = end // A group's window may be longer than one's own slots.
	}
	x.target(next)
}
