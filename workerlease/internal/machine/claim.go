package machine

import (
	"encoding/binary"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// contend goes on with the contention for State.Slot as far as it can without
// waiting: until a ledger operation is under way, or it is too early.
func (x *step) contend() {
	s := &x.s
	if s.Pending != Nothing || x.backingOff() {
		return
	}
	if !x.at.Now.Known() || s.Resample || s.Probe {
		x.ask(Sampling, Sample{})
		return
	}
	if !x.m.through(s) {
		x.aim()
	}
	if x.trim() {
		return
	}
	if x.closing() && s.Watch.Seq == 0 && (s.Stage == Aiming || s.Stage == Reading && s.Claim.ID == "") {
		x.readHead()
		return
	}
	if x.m.through(s) {
		return
	}
	if x.m.blocked(s) {
		// Looking at what became of an append is not a claim, nor is telling what is done.
		switch {
		case s.Stage == Checking:
			x.ask(ReadingRecord, ReadRecord{s.Sent.Seq})
		case s.Stage == Sending && s.Sent.Kind != store.KindGrant:
			x.send()
		}
		return
	}
	switch s.Stage {
	case Aiming:
		x.claim()
	case Reading:
		x.readHead()
	case Sending:
		x.send()
	case Checking:
		x.ask(ReadingRecord, ReadRecord{s.Sent.Seq})
	case Halted:
	}
}

// aim sees to it that Slot is the one to contend for now.
func (x *step) aim() {
	s, mid := &x.s, x.at.Now.Mid()
	x.abandonExtension()
	if s.Slot.IsZero() {
		entry := x.m.Rules.Entry(x.m.JoinMidSlot, x.m.Group)
		if entry == FromNext {
			x.target(x.m.Schedule.Next(mid))
			return
		}
		s.Slot, s.JoinOnly = x.m.Schedule.At(mid), entry == AsMember
		s.First = s.Slot
		s.Turn, s.TurnEdge = mid, timeline.Mid
		return
	}
	if s.Reaim > 0 && x.at.Local >= s.Reaim {
		// A jump that was taken back may have turned Slot to one far ahead.
		s.Reaim = 0
		next := x.m.Schedule.Next(mid)
		if s.Stage == Aiming && next.Start.Before(s.Slot.Start) && !next.Start.Before(s.WonEnd) {
			x.target(next)
		}
	}
	if mid.Before(x.m.leaves(s)) || x.m.Single && s.Slot == s.First && mid.Before(s.Slot.End) {
		return // (A single claim takes what is left of its slot, however little, and no other.)
	}
	// The slot is given up. More may have passed meanwhile.
	next := x.m.Schedule.Next(s.Slot.Start)
	if now := x.m.Schedule.At(mid); next.Start.Before(now.Start) {
		next = now
	}
	if !mid.Before(x.m.abandoned(next)) {
		next = x.m.Schedule.Next(next.Start)
	}
	x.miss(next.Start)
	x.target(next)
}

// through reports that the worker has nothing more to contend for.
func (m *Machine) through(s *State) bool {
	return m.Single && !m.Continuous && s.Slot.Start.After(s.First.Start)
}

// turns is when the worker turns from Slot to the next one: when it is abandoned or, if
// it is not the worker's to miss, when claims for the next one open.
func (m *Machine) leaves(s *State) time.Time {
	if s.aside() {
		return m.opens(m.Schedule.Next(s.Slot.Start))
	}
	return m.abandoned(s.Slot)
}

// abandoned is when a slot is given up that nobody is known to have.
func (m *Machine) abandoned(slot slots.Slot) time.Time {
	return m.Rules.Abandon(slot, m.opens(m.Schedule.Next(slot.Start)))
}

// aside reports that Slot can't be missed: the worker only joins in it, or another has
// it, or it is to extend its own term there.
func (s *State) aside() bool { return s.JoinOnly || s.Standby || s.Extending }

// target turns to a slot. Its turn counts from the opening of claims or, if the
// slot has begun, from now.
func (x *step) target(slot slots.Slot) {
	s, now := &x.s, x.at.Now
	s.drop()
	s.JoinOnly = s.JoinOnly && s.Slot == slot
	s.Standby = s.Standby && s.Slot == slot
	s.Slot, s.TurnEdge = slot, timeline.Mid
	mid, turns, turn := now.Mid(), x.turns(), x.turn(x.had(slot))
	if s.Extending = x.leads(slot); s.Extending {
		s.Turn = slot.Start.Add(-turns.Lead - turns.Step)
		return
	}
	if !mid.Before(slot.Start) {
		s.Turn = mid.Add(turn)
		return
	}
	s.Turn = slot.Start.Add(turn - turns.Lead)
	// After a long wait the middle may be far off: look at the time as early as
	// the turn may have come.
	grown := now.Uncertainty() + time.Duration(float64(slot.Start.Sub(mid))*timeline.MaxDrift)
	if grown > turns.Lead/4 {
		s.TurnEdge = timeline.Latest
	}
}

// turn schedule is that of Slot, as wide as the time is uncertain and the store slow.
func (x *step) turns() priority.Turns {
	spread := x.m.Rules.Spread(x.at.Now.Uncertainty(), x.s.Latency)
	return priority.NewTurns(x.m.lead(x.s.Slot), x.m.Config.Step, spread)
}

// turn is this worker's turn on the turn schedule, counted from the opening; held says that it
// had what comes before.
func (x *step) turn(held bool) time.Duration {
	draw := binary.LittleEndian.Uint64(x.at.Draw[:8])
	return x.m.Rules.Turn(x.turns(), x.m.Priority, x.m.TieBreak, held, draw)
}

// had reports that this worker had the slot before one: to its end, or until its work
// was done.
func (x *step) had(slot slots.Slot) bool {
	return x.s.WonEnd.Equal(slot.Start) || x.m.Once && x.s.WonSlot.Equal(slot.Start)
}

// drop forgets the claim. If its append is in doubt, it may still land.
func (s *State) drop() {
	if s.OutcomeUnknown && s.Sent.Kind == store.KindGrant {
		s.VoidClaim = s.Sent.Claim
	}
	s.Stage, s.Claim, s.Sent, s.OutcomeUnknown, s.Why = Aiming, Claim{}, store.Record{}, false, 0
}

// next turns to the slot after Slot.
func (x *step) next() { x.target(x.m.Schedule.Next(x.s.Slot.Start)) }

// miss tells that Slot, and all up to until, were missed.
func (x *step) miss(until time.Time) {
	s := &x.s
	if s.aside() {
		return
	}
	why := s.Why
	switch {
	case s.overrunning() && s.Overran:
		why = Overrunning
	case why == 0 && s.Failures > 0:
		why = Unreachable
	case why == 0:
		why = TooLate
	}
	x.note(Note{What: Missed, Slot: s.Slot, Until: until, Why: why})
}

// climb fixes the claim and reads the head once the turn is reached, by a fresh
// estimate of the time.
func (x *step) claim() {
	s, now := &x.s, x.at.Now
	if now.At(s.TurnEdge).Before(s.Turn) {
		return
	}
	if s.Extending && s.Held.End.After(s.Slot.Start) {
		x.extendNow()
		return
	}
	if x.at.Age > freshToClaim(x.m.lead(s.Slot)) {
		x.ask(Sampling, Sample{})
		return
	}
	if s.TurnEdge == timeline.Latest {
		s.TurnEdge = timeline.Mid
		if now.Mid().Before(s.Turn) {
			return
		}
	}
	start := later(s.Slot.Start, ceil(now.Latest))
	s.Claim = Claim{
		ID:    x.id(),
		Start: start,
		End:   x.m.windowEnd(s.Slot, start),
		Fixed: now.Earliest,
		Local: x.at.Local,
	}
	x.readHead()
}

func (x *step) readHead() {
	limit := max(1, x.s.Depth)
	if x.s.Watch.Seq != 0 || x.s.LastGrant.Seq != 0 {
		limit = max(limit, lookBack) // for what is below the poison, or for the worker's own
	}
	x.s.Asked = limit
	x.s.Stage, x.s.ReadEpoch = Reading, x.s.Epoch
	x.ask(ReadingHead, ReadHead{limit})
}

// aged reports that the claim is too old to be worked under. Its age is what the
// local clock says, at the most: that is known however uncertain store time is.
func (x *step) aged() bool {
	c, most := x.s.Claim, x.m.Rules.ClaimAge
	if x.s.Sent.Kind == store.KindGrant && x.s.Sent.Claim != c.ID {
		most = lookAge // It extends a term.
	}
	age := x.at.Local - c.Local
	age += time.Duration(float64(age) * timeline.MaxDrift)
	return c.ID != "" && age > most
}

// expireClaim gives up a claim that got too old, and begins another at once.
func (x *step) expireClaim() {
	s := &x.s
	s.VoidClaim = s.Claim.ID
	if s.Sent.Kind == store.KindGrant {
		s.VoidClaim = s.Sent.Claim
	}
	x.again()
}

// again turns to Slot once more, with another claim.
func (x *step) again() {
	slot := x.s.Slot
	x.target(slot)
}

// send appends Sent, if that is still right.
func (x *step) send() {
	s := &x.s
	switch {
	case s.Sent.Kind == store.KindGrant && s.Sent.Claim != s.Claim.ID && !x.m.Rules.Prolong(s.Held, s.Sent):
		x.again()
	case s.Sent.Kind == store.KindGrant && x.aged():
		x.expireClaim()
	case s.Sent.Kind == store.KindGrant && !s.OutcomeUnknown && s.ReadEpoch != s.Epoch:
		// Made by a clock that has jumped since.
		x.again()
	case x.at.Age > x.m.Rules.Fresh:
		x.ask(Sampling, Sample{})
	default:
		x.ask(Appending, Append{s.Sent})
	}
}
