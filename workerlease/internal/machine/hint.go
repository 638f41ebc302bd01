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
// follows from it is that the head is read sooner, by a worker that waits for the end of another
// one's window, and would claim what a release leaves. Nothing waits for a hint.

// Hint is what a worker has heard.
type Hint struct {
	Heard   bool          // a hint, since the head was asked for last
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

// MayHeed reports that a hint may matter in a state. The worker waits for the end of another
// one's window, or the head is being read, which may show that. After one hint a second says no more.
func (m *Machine) MayHeed(s *State) bool {
	return !s.Hint.Heard && !s.Stopping && s.Bid.Stage != Halted && m.TakesRests() && (s.Pending == ReadingHead || m.waitsForRival(s))
}

// TakesRests reports that the worker claims what a release leaves of a slot that it has lost: hints
// are of no use to others.
func (m *Machine) TakesRests() bool { return !m.Single && (m.Failover > 0 || m.Continuous) }

// waitsForRival reports that the bid waits for the end of another worker's window: to take over
// the rest of its slot or, if that is for those who hear of a release, for the next slot.
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

// heed turns to the slot that was lost, to read the head in the order of the turns, if a hint
// says that this may have changed, and if that is over before claims for the next slot are due.
func (x *step) heed() {
	s := x.s
	if !s.Hint.Heard || !x.m.waitsForRival(s) || x.at.Local < s.Hint.next() {
		return
	}
	s.Hint.Heard = false // What was appended by now is read at the turn.
	b, slot, mid := &s.Bid, s.View.Rival.Slot, x.at.Now.Mid()
	by := x.m.opens(x.m.Schedule.Next(slot.Start))
	if begins := x.m.begins(s); b.Slot != slot && begins.Before(by) {
		by = begins
	}
	took := x.m.Rules.Landing(s.Trips, false)
	turn := x.hintTurn(slot)
	from := x.at.Now.Earliest.Add(turn)
	switch {
	case !mid.Add(turn + took).Before(by):
		return
	case b.Slot == slot && !b.Turn.After(from):
		return
	}
	b.Slot, b.Role = slot, Standby
	b.Outage, b.Awaited, b.Narrowed = false, 0, false
	b.wait(from, timeline.Earliest)
	h := &s.Hint
	h.Looking, h.Looked, h.Spent = true, x.at.Local, max(h.Spent, x.at.Local)+hintEvery
}

// looking reports that what is under way, or comes next, is a look because of a hint.
func (f facts) looking() bool {
	s := f.s
	return s.Hint.Looking && !s.Stopping && s.Bid.Role == Standby && s.Bid.Slot == s.View.Rival.Slot
}

// lookFailed goes back to waiting, as if there had been no look: the next claim must not have to wait
// for a back-off that comes from a hint. The look is made up for, unless the store asks for fewer.
func (x *step) lookFailed(op Op, err error) {
	s := x.s
	x.note(Note{What: Failed, Op: op, Err: err})
	s.Hint.Looking, s.Hint.Heard = false, !errors.Is(err, store.ErrThrottled)
	s.Bid.drop()
	if !x.standBy(s.View.Rival.End) {
		x.next()
	}
}

// ranOut waits for the turn after the end of the head's window, if that has ended during a look: only
// what is released is claimed in the order of looks. It reports whether there is anything to wait for.
func (x *step) ranOut(head store.Record) bool {
	b, now := &x.s.Bid, x.at.Now.Earliest
	if head.Kind != store.KindGrant || b.Role != Standby || head.WindowEnd.After(now) || !head.WindowEnd.After(b.Slot.Start) {
		return false
	}
	turn := head.WindowEnd.Add(x.turn(x.s.Hold.WonEnd.Equal(head.WindowEnd)))
	if !turn.After(now) {
		return false
	}
	b.wait(turn, timeline.Earliest)
	return true
}

// hintTurn is how long after a hint the worker looks. Its steps needn't allow for what is
// uncertain of the time: all workers get the hint at one moment.
func (f facts) hintTurn(slot slots.Slot) time.Duration {
	step := min(max(hintStep, f.m.Rules.Landing(f.s.Trips, true)), f.turns().Step)
	held := f.s.Hold.had(slot, f.m.Once)
	draw := f.turnDraw()
	return f.m.Rules.Turn(priority.NewTurns(f.m.lead(slot), step, 0), f.m.Priority, f.m.TieBreak, held, draw)
}

// hinted takes a hint for what it is: the head alone says what is in force.
func hinted(head store.Record, _ timeline.Interval) store.Record { return head }
