package machine

import (
	"errors"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// A hint says that something may have been appended. It is no proof of anything: all that
// follows from it is that the head is read sooner, by a worker that takes over the rests of slots
// and waits for the end of another one's window. Nothing waits for a hint.

// Hint is what a worker has heard.
type Hint struct {
	Heard   bool          // a hint, since the head was asked for last
	Timed   bool          // and the time was sampled for it
	Looking bool          // the head is to be read because of one
	Looked  time.Duration // the local reading of the last such look
	Spent   time.Duration // the local reading at which all looks of late are made up for
}

// Of the looks at the head that follow from hints, there may be hintBurst hintGap apart, and then one
// each hintEvery: whatever the hints say, a worker reads less than once a second.
const (
	hintGap   = 100 * time.Millisecond
	hintEvery = 3 * time.Second
	hintBurst = 5
)

// hintFresh is how old the newest sample of the time may be when a worker looks because of a hint. What
// clocks drift in that time is far less than hintStep, so turns are in order whoever had to sample.
const hintFresh = 100 * time.Millisecond

// hintStep is the least time between two turns after a hint. Workers get a hint at one time, and
// the next one is to find what the first one has claimed.
const hintStep = 2 * time.Millisecond

// Rival is the window of another worker for whose end this one waits.
type Rival struct {
	Slot slots.Slot // that this worker has lost to it; zero: there is no such window
	End  time.Time
}

// next is the local reading at which the head may be read because of a hint.
func (h *Hint) next() time.Duration {
	if h.Spent == 0 {
		return 0
	}
	return max(h.Looked+hintGap, h.Spent-(hintBurst-1)*hintEvery)
}

// MayHeed reports that another hint may matter in a state. The worker waits for others, or the head is
// being read, which may show that it does. After one hint a second says no more.
func (m *Machine) MayHeed(s *State) bool {
	return m.TakesRests() && !s.Hint.Heard && !s.Stopping && s.Bid.Stage != Halted && (s.Pending == ReadingHead || m.waitsForOthers(s) || m.attends(s))
}

// waitsForOthers reports that the bid waits for what another worker, or an operator, may append at any time.
func (m *Machine) waitsForOthers(s *State) bool { return m.waitsForRival(s) || m.sitsOut(s) }

// TakesRests reports that the worker looks again at a slot that it has lost, and claims what a release
// leaves of it. Without Failover the next slot is the next chance, whatever a hint says.
func (m *Machine) TakesRests() bool { return !m.Single && m.Failover > 0 }

// waitsForRival reports that the bid waits for the end of another worker's window: to take over the
// rest of its slot or, if that window ends too late for a look at its end, for the next slot.
func (m *Machine) waitsForRival(s *State) bool {
	b, r := &s.Bid, &s.View.Rival
	if r.Slot.IsZero() || b.Stage != Aiming || s.Hold.holding() || m.blocked(s) || b.yields() || s.Clock.Unknown() || s.View.Watch.Seq != 0 {
		return false
	}
	return b.Slot == r.Slot && b.Role == Standby || b.Slot.Start.Equal(r.Slot.End) && b.Role == Claimant
}

// rival notes that the bid's slot is lost to the window in the head.
func (x *step) rival(slot slots.Slot, head store.Record) {
	if x.m.TakesRests() && !x.s.Bid.SkipSlot.Equal(slot.Start) && head.WindowEnd.After(x.at.Now.Earliest) {
		x.s.View.Rival = Rival{slot, head.WindowEnd}
	}
}

// heed turns to the slot that was lost, or stays with the one that an order keeps the worker from, to
// read the head in the order of the turns, if a hint says that this may have changed, and if that is over before claims for the next slot are due. It
// reports whether the time is sampled first: the turns are the shorter the better it is known.
func (x *step) heed() (samples bool) {
	s, h := x.s, &x.s.Hint
	if !h.Heard || !x.m.waitsForOthers(s) || !h.Timed && x.at.Local < h.next() {
		return false
	}
	timed := h.Timed
	samples = !timed && x.at.Age > hintFresh
	h.Heard, h.Timed = false, false // What was appended by now is read at the turn.
	b, slot, mid := &s.Bid, s.View.Rival.Slot, x.at.Now.Mid()
	if b.Barred {
		slot = b.Slot
	}
	by := x.m.opens(x.m.Schedule.Next(slot.Start))
	if begins := x.m.begins(s); b.Slot != slot && begins.Before(by) {
		by = begins
	}
	widths := time.Duration(4)
	if samples {
		widths = 0 // The sample shows how wide the turns are.
	}
	took, turn := x.m.Rules.Landing(s.Trips, false), x.hintTurn(widths)
	from := x.at.Now.Earliest.Add(turn)
	// A look that is due anyway waits, too: released rests are claimed in the order of the turns. It waits
	// once, and not for long, because the hint may be wrong.
	soon := b.Slot == slot && !b.Turn.After(from)
	switch {
	case !mid.Add(turn + took).Before(by):
		return false
	case !samples && soon && (h.Looking || from.Sub(b.Turn) > hintGap):
		return false
	}
	if !timed {
		h.Looked, h.Spent = x.at.Local, max(h.Spent, x.at.Local)+hintEvery
	}
	if samples {
		h.Heard, h.Timed = true, true
		x.ask(Sampling, Sample{})
		return true
	}
	if b.Barred {
		b.sitOut(from)
		return false
	}
	b.Slot, b.Role = slot, Standby
	b.Outage, b.Awaited, b.Narrowed = false, 0, false
	b.wait(from, timeline.Earliest)
	h.Looking = true
	return false
}

// looking reports that what is under way, or comes next, is a look because of a hint, or the time
// for it.
func (f facts) looking() bool {
	s := f.s
	if s.Hint.Timed {
		return !s.Stopping
	}
	return s.Hint.Looking && !s.Stopping && s.Bid.Role == Standby && s.Bid.Slot == s.View.Rival.Slot
}

// lookFailed goes back to waiting, as if there had been no look: the next claim must not have to wait
// for a back-off that comes from a hint. The look is made up for, unless the store asks for fewer.
func (x *step) lookFailed(op Op, err error) {
	s := x.s
	x.note(Note{What: Failed, Op: op, Err: err})
	timing := s.Hint.Timed
	s.Hint.Looking, s.Hint.Timed, s.Hint.Heard = false, false, !errors.Is(err, store.ErrThrottled)
	if timing {
		return // It had not turned to the slot yet.
	}
	s.Bid.drop()
	if !x.standBy(s.View.Rival.End) {
		x.next()
	}
}

// ranOut waits for the turn after the end of the head's window, if that has ended during a look: only
// what is released is claimed in the order of looks. It reports whether there is anything to wait for.
func (x *step) ranOut(head store.Record) bool {
	b, now := &x.s.Bid, x.at.Now.Earliest
	_, granted := x.m.Rules.Granted(head)
	if !granted || x.m.Rules.GivenBack(head) || b.Role != Standby || head.WindowEnd.After(now) || !head.WindowEnd.After(b.Slot.Start) {
		return false
	}
	turn := head.WindowEnd.Add(x.turn(x.s.Hold.WonEnd.Equal(head.WindowEnd)))
	if !turn.After(now) {
		return false
	}
	b.wait(turn, timeline.Earliest)
	return true
}

// hintTurn is how long after a hint, or after the end of what was released, the worker looks. Its
// steps are as wide as a claim takes to land, and so many times as wide as the time is uncertain: two
// for workers that wait for a time of the store, and four for those that look right after a hint, since
// what was released ends up to two after that, and those before them may have to wait for it.
func (f facts) hintTurn(widths time.Duration) time.Duration {
	slot, usual := f.s.View.Rival.Slot, f.turns().Step
	if slot.IsZero() {
		slot = f.s.Bid.Slot
	}
	step := min(max(hintStep, f.m.Rules.Landing(f.s.Trips, true), widths*f.at.Now.Uncertainty()), usual)
	turns := priority.NewTurns(f.m.lead(slot), step, 0)
	return f.turnIn(turns, f.s.Hold.had(slot, f.m.Once))
}

// hinted takes a hint for what it is: the head alone says what is in force.
func hinted(head store.Record, _ timeline.Interval) store.Record { return head }
