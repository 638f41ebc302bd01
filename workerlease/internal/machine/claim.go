package machine

import (
	"encoding/binary"
	"errors"
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
		x.climb()
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
	x.fall()
	if s.Slot.IsZero() {
		if x.m.JoinMidSlot || x.m.Group != "" {
			s.Slot, s.JoinOnly = x.m.Schedule.At(mid), !x.m.JoinMidSlot
			s.First = s.Slot
			s.Rung, s.RungEdge = mid, timeline.Mid
			return
		}
		x.target(x.m.Schedule.Next(mid))
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
	next := x.m.Schedule.Next(s.Slot.Start)
	if !x.open(next) {
		return
	}
	// Claims for the slot after this one are open, and this one is undecided. More
	// slots may have passed meanwhile.
	if now := x.m.Schedule.At(mid); next.Start.Before(now.Start) {
		next = now
	}
	if after := x.m.Schedule.Next(next.Start); x.open(after) {
		next = after
	}
	x.miss(next.Start)
	x.target(next)
}

// through reports that the worker has nothing more to contend for.
func (m *Machine) through(s *State) bool {
	return m.Single && !m.Continuous && s.Slot.Start.After(s.First.Start)
}

// open reports whether claims for a slot are open.
func (x *step) open(slot slots.Slot) bool {
	return !x.at.Now.Mid().Before(slot.Start.Add(-x.m.lead(slot)))
}

// target turns to a slot. Its rung counts from the opening of claims or, if the
// slot has begun, from now.
func (x *step) target(slot slots.Slot) {
	s, now := &x.s, x.at.Now
	s.drop()
	s.JoinOnly = s.JoinOnly && s.Slot == slot
	s.Standby = s.Standby && s.Slot == slot
	s.Slot, s.RungEdge = slot, timeline.Mid
	mid, ladder, place := now.Mid(), x.ladder(), x.place(x.had(slot))
	if s.Extending = x.leads(slot); s.Extending {
		s.Rung = slot.Start.Add(-ladder.Lead - ladder.Step)
		return
	}
	if !mid.Before(slot.Start) {
		s.Rung = mid.Add(place)
		return
	}
	s.Rung = slot.Start.Add(place - ladder.Lead)
	// After a long wait the middle may be far off: look at the time as early as
	// the rung may have come.
	grown := now.Uncertainty() + time.Duration(float64(slot.Start.Sub(mid))*timeline.MaxDrift)
	if grown > ladder.Lead/4 {
		s.RungEdge = timeline.Latest
	}
}

// ladder is that of Slot, as wide as the time is uncertain and the store slow.
func (x *step) ladder() priority.Ladder {
	return priority.NewLadder(x.m.lead(x.s.Slot), x.m.Config.Step, x.at.Now.Uncertainty()+x.s.Latency)
}

// place is this worker's place on the ladder, counted from its foot; held says that it
// had what comes before.
func (x *step) place(held bool) time.Duration {
	draw := binary.LittleEndian.Uint64(x.at.Draw[:8])
	return x.ladder().Offset(x.m.Priority, x.m.TieBreak, held, draw)
}

// had reports that this worker had the slot before one: to its end, or until its work
// was done.
func (x *step) had(slot slots.Slot) bool {
	return x.s.WonEnd.Equal(slot.Start) || x.m.Once && x.s.WonSlot.Equal(slot.Start)
}

// drop forgets the claim. If its append is in doubt, it may still land.
func (s *State) drop() {
	if s.Doubt && s.Sent.Kind == store.KindGrant {
		s.Void = s.Sent.Claim
	}
	s.Stage, s.Claim, s.Sent, s.Doubt, s.Why = Aiming, Claim{}, store.Record{}, false, 0
}

// next turns to the slot after Slot.
func (x *step) next() { x.target(x.m.Schedule.Next(x.s.Slot.Start)) }

// miss tells that Slot, and all up to until, were missed.
func (x *step) miss(until time.Time) {
	s := &x.s
	if s.JoinOnly || s.Standby || s.Extending {
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
	x.tell(Note{What: Missed, Slot: s.Slot, Until: until, Why: why})
}

// climb fixes the claim and reads the head once the rung is reached, by a fresh
// estimate of the time.
func (x *step) climb() {
	s, now := &x.s, x.at.Now
	if now.At(s.RungEdge).Before(s.Rung) {
		return
	}
	if s.Extending && s.Held.End.After(s.Slot.Start) {
		x.prolong()
		return
	}
	if x.at.Age > max(x.m.lead(s.Slot), time.Second) {
		x.ask(Sampling, Sample{})
		return
	}
	if s.RungEdge == timeline.Latest {
		s.RungEdge = timeline.Mid
		if now.Mid().Before(s.Rung) {
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
	limit := 1
	if x.s.Watch.Seq != 0 || x.s.Mark.Seq != 0 {
		limit = lookBack // for what is below the poison, or for the worker's own
	}
	x.s.Stage, x.s.ReadEpoch = Reading, x.s.Epoch
	x.ask(ReadingHead, ReadHead{limit})
}

// aged reports that the claim is too old to be worked under. Its age is what the
// local clock says, at the most: that is known however uncertain store time is.
func (x *step) aged() bool {
	c, most := x.s.Claim, x.m.Rules.ClaimAge
	if x.s.Sent.Kind == store.KindGrant && x.s.Sent.Claim != c.ID {
		most = x.m.Rules.LookAge // It extends a tenure.
	}
	age := x.at.Local - c.Local
	age += time.Duration(float64(age) * timeline.MaxDrift)
	return c.ID != "" && age > most
}

// expireClaim gives up a claim that got too old, and begins another at once.
func (x *step) expireClaim() {
	s := &x.s
	s.Void = s.Claim.ID
	if s.Sent.Kind == store.KindGrant {
		s.Void = s.Sent.Claim
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
	case s.Sent.Kind == store.KindGrant && s.Sent.Claim != s.Claim.ID && s.Sent.Claim != s.Held.Claim:
		x.again() // The tenure that it extends was left meanwhile.
	case s.Sent.Kind == store.KindGrant && x.aged():
		x.expireClaim()
	case s.Sent.Kind == store.KindGrant && !s.Doubt && s.ReadEpoch != s.Epoch:
		// Made by a clock that has jumped since.
		x.again()
	case x.at.Age > x.m.Rules.Fresh:
		x.ask(Sampling, Sample{})
	default:
		x.ask(Appending, Append{s.Sent})
	}
}

// sampled takes in that the store told its time, or didn't.
func (x *step) sampled(e Sampled) {
	s := &x.s
	if e.Err != nil {
		x.failed(Sampling, e.Err)
		x.regroup()
		return
	}
	if x.jumped {
		// Ask again, but not at once: servers that contradict each other would be
		// asked without end.
		x.backOff(nil)
		return
	}
	x.succeeded()
	s.Resample = false
	if s.Probe {
		s.Probe = false
		if s.Stage == Reading || s.Stage == Aiming {
			x.again()
		}
		s.Why = Unreachable // should the slot be missed yet
	}
}

// regroup sees to it that after an outage that outlasted the boundary, when all
// come back at once, the rungs count again from then: the time is asked for
// before all else.
func (x *step) regroup() {
	s := &x.s
	s.Probe = !s.Stopping && !s.Slot.IsZero() && x.at.Now.Known() && !x.at.Now.Mid().Before(s.Slot.Start)
}

// headRead takes in the head.
func (x *step) headRead(e HeadRead) {
	s := &x.s
	if e.Err != nil {
		x.failed(ReadingHead, e.Err)
		x.regroup()
		return
	}
	x.succeeded()
	s.ReadAt = x.m.Rules.ReadAt(x.at.Now)
	records := e.Records
	if len(records) > 0 && records[0].Seq == 0 {
		x.tell(Note{What: Poison, Slot: s.Slot, Record: records[0], Err: errors.New(records[0].Defect)})
		records = records[1:]
	}
	x.vanished(records)
	var head store.Record
	if len(records) > 0 {
		head, records = records[0], records[1:]
	}
	if s.Known = (Known{}); x.poison(head) == nil {
		s.Known = Known{Fixed: x.at.Now.Earliest, Local: x.at.Local}
	}
	if s.Stopping {
		// A read from before the stop may come while the user's code still runs.
		if !x.m.awaits(s, Releasing) {
			x.see(head)
			x.surrender(head)
		}
		return
	}
	x.judge(head, records)
	if s.ReadEpoch == x.at.Epoch && s.Settle.IsZero() && x.poison(head) == nil {
		s.Settle = head.WindowEnd
		if head.WindowEnd.IsZero() {
			s.Settle = x.at.Now.Earliest
		}
	}
}

// appended takes in what came of an append.
func (x *step) appended(e Appended) {
	s := &x.s
	s.Latency += (e.Took - s.Latency) / 4
	switch x.m.Rules.Outcome(e.Err) {
	case Landed:
		x.succeeded()
		x.stored(s.Sent)
	case Taken:
		x.tell(Note{What: Conflict, Slot: s.Slot, Record: s.Sent, Err: e.Err})
		s.Stage = Checking
	case Refused:
		x.failed(Appending, e.Err)
		x.miss(s.Slot.End)
		x.next()
	case InDoubt:
		x.tell(Note{What: Unknown, Slot: s.Slot, Record: s.Sent, Err: e.Err})
		s.Failures++
		if s.Tries > 0 || errors.Is(e.Err, store.ErrThrottled) {
			x.backOff(e.Err)
		} else {
			s.Tries++ // look at once, then ever later
		}
		s.Stage, s.Doubt = Checking, true
	}
}

// recordRead takes in what stands at the key of Sent.
func (x *step) recordRead(e RecordRead) {
	s := &x.s
	switch {
	case errors.Is(e.Err, store.ErrNotFound) && s.Doubt:
		// Absent is not failed: it may land later.
		if s.Stopping && s.Sent.Kind == store.KindGrant {
			s.drop()
			return
		}
		s.Claim, s.Sent = x.m.Rules.Resend(s.Claim, s.Sent, x.at)
		s.Stage = Sending
		x.backOff(nil)
	case errors.Is(e.Err, store.ErrNotFound):
		// Taken a moment ago, and gone: a stale read, or trimmed since.
		s.Stage = Reading
		x.backOff(nil)
	case e.Err != nil:
		x.failed(ReadingRecord, e.Err)
	case x.m.Rules.Mine(e.Record, x.m.identity(s.Sent.Claim)) && e.Record.Kind == s.Sent.Kind && !e.Record.DoneUntil.Before(s.Sent.DoneUntil):
		// (Another worker's done record repeats the same claim, for its own slot.)
		x.succeeded()
		x.stored(e.Record)
	default:
		// Somebody else's: one's own can never land there now.
		x.succeeded()
		s.Doubt = false
		s.ReadAt = x.m.Rules.ReadAt(x.at.Now)
		x.refused(e.Record)
	}
}

// stored goes on after one's own record is known to be in the ledger.
func (x *step) stored(r store.Record) {
	s := &x.s
	s.Doubt = false
	switch r.Kind {
	case store.KindGrant:
		x.confirm(r, true)
	case store.KindRelease:
		x.see(r)
		x.tell(Note{What: Released, Slot: slots.Slot{Start: r.SlotStart, End: r.SlotEnd}, Record: r})
		x.reread()
	case store.KindDone:
		x.told(r)
	default:
		x.tell(Note{What: Reset, Slot: s.Slot, Record: r})
		x.reread()
	}
}

// reread turns back to the head, if it was read for a claim or is to be read again.
func (x *step) reread() {
	s := &x.s
	s.Stage, s.Sent = Reading, store.Record{}
	if s.Claim.ID == "" && !x.closing() && !s.Stopping {
		s.Stage = Aiming
	}
}

// refused goes on after somebody else's record was found where one's own was
// to go.
func (x *step) refused(r store.Record) {
	s := &x.s
	switch {
	case s.Stopping && s.Sent.Kind == store.KindRelease && r.Kind != store.KindRelease && r.Claim == s.Sent.Claim && x.poison(r) == nil:
		// Another's done record, which changes nothing of the tenure.
		x.see(r)
		if !x.release(r, r.Claim) {
			x.reread()
		}
	case s.Sent.Kind == store.KindGrant && !s.Stopping:
		x.judge(r, nil)
	case s.Sent.Kind == store.KindGrant:
		s.drop()
	default:
		x.reread()
	}
}
