package machine

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Start is the state of a new worker on a time line with a history, of which it
// need not mind what came before the epoch settled.
func Start(epoch, settled, jumps int) State {
	return State{Epoch: epoch, Settled: settled, Jumps: jumps}
}

// Machine decides for one worker.
type Machine struct{ Config }

// Step takes in an event and says what to do.
func (m *Machine) Step(s State, at Moment, e Event) (State, []Action) {
	if s.Stage == Halted {
		return s, nil
	}
	x := &step{m: m, s: s, at: at}
	switch e.(type) {
	case Began, Skipped:
		// What was decided a moment ago comes before what the clock has done since:
		// both callbacks are called, or none.
		x.take(e)
		x.clock()
	default:
		x.clock()
		x.take(e)
	}
	x.hold()
	if x.s.Stopping {
		x.stop()
	} else {
		x.contend()
	}
	return x.s, x.out
}

// step is one call of Step.
type step struct {
	m      *Machine
	s      State
	at     Moment
	jumped bool // in this very step
	out    []Action
}

func (x *step) do(a Action) { x.out = append(x.out, a) }

func (x *step) note(n Note) { x.do(Tell{n}) }

// ask begins a ledger operation.
func (x *step) ask(op Op, a Action) {
	x.s.Pending = op
	x.do(a)
}

// clock takes notice of what happened to the time line.
func (x *step) clock() {
	s := &x.s
	if x.at.Epoch > s.Epoch {
		s.Epoch, s.Settle = x.at.Epoch, time.Time{}
	}
	if x.m.Rules.Jumped(s.Jumps, x.at.Jumps) {
		s.Resample, x.jumped = true, true
		if !s.Held.IsZero() {
			x.expire(ClockJumped)
		}
	}
	s.Jumps = x.at.Jumps
	if s.Settled < s.Epoch && x.m.Rules.Settled(x.at.Now, s.Settle) {
		s.Settled = s.Epoch
		s.Reaim = x.at.Local + time.Millisecond // x.at.Now is still that from before
	}
	if s.Retry <= x.at.Local {
		s.Retry = 0
	}
}

// done notes that an operation came back, and reports whether it was under way:
// a reply that nobody waits for is ignored.
func (x *step) done(op Op) bool {
	if x.s.Pending != op {
		return false
	}
	x.s.Pending = Nothing
	return true
}

// take takes in the event itself.
func (x *step) take(e Event) {
	s := &x.s
	switch e := e.(type) {
	case Wake:
	case Sampled:
		if x.done(Sampling) {
			x.sampled(e)
		}
	case HeadRead:
		if x.done(ReadingHead) {
			x.headRead(e)
		}
	case RecordRead:
		if x.done(Probing) {
			x.probed(e)
		} else if x.done(ReadingRecord) {
			x.recordRead(e)
		}
	case Appended:
		if x.done(Appending) {
			x.appended(e)
		}
	case Trimmed:
		if x.done(Trimming) {
			x.trimmed(e)
		}
	case Began:
		if !s.Held.IsZero() {
			x.note(Note{What: Allocated, Slot: s.Held.Slot})
		}
	case Skipped:
		if !s.Held.IsZero() {
			x.note(Note{What: Missed, Slot: s.Held.Slot, Until: s.Held.Slot.End, Why: TooLate})
			s.Left, s.Held, s.Running = s.Held, Term{}, false
		}
	case Panicked:
		// Code that panics when its context has ended is not why it ended.
		if !s.Held.IsZero() && x.at.Lapsed == 0 {
			x.expire(CodePanicked)
		}
	case Finished:
		x.finished(e)
	case Rested:
		if s.Held.IsZero() {
			break // It ended meanwhile, and the next lease begins with a call.
		}
		s.Rest = x.m.Schedule.Next(x.m.Schedule.At(x.at.Now.Mid()).Start).Start
	case Returned:
		// Nothing has returned while the lease is held: this would be a stray.
		s.Running = s.Running && !s.Held.IsZero()
	case Stop:
		x.beginStop()
	case GiveUp:
		x.beginStop()
		s.GivenUp = true
	}
}

// failed counts an operation that failed, and backs off.
func (x *step) failed(op Op, err error) {
	x.s.Failures++
	x.note(Note{What: Failed, Op: op, Err: err})
	x.backOff(err)
}

// backOff doubles the wait with each try in a row that came to nothing, up to
// MaxBackoff or an eighth of the slot (for an extension, of the time that is left for
// it), less up to half of it at random. A store that asks for more gets it, up to the
// age of a claim.
func (x *step) backOff(err error) {
	s := &x.s
	most := x.m.MaxBackoff
	if !s.Slot.IsZero() {
		most = min(most, max(s.Slot.Length()/8, 10*time.Millisecond))
	}
	if s.Extending && x.m.Failover > 0 {
		most = min(most, max(x.m.early()/8, 10*time.Millisecond))
	}
	d := min(x.m.MinBackoff<<min(s.Tries, 10), most)
	d -= time.Duration(float64(d) / 2 * x.fraction())
	if t, ok := errors.AsType[*store.ThrottledError](err); ok {
		d = max(d, min(t.RetryAfter, x.m.Rules.ClaimAge))
	}
	s.Tries++
	s.Retry = x.at.Local + max(d, time.Millisecond)
}

func (x *step) succeeded() { x.s.Failures, x.s.Tries, x.s.Retry = 0, 0, 0 }

func (x *step) backingOff() bool { return x.s.Retry > x.at.Local }

// fraction is a draw in [0, 1).
func (x *step) fraction() float64 {
	return float64(binary.LittleEndian.Uint32(x.at.Draw[8:12])) / (1 << 32)
}

// id is a draw of 128 bits.
func (x *step) id() string { return hex.EncodeToString(x.at.Draw[:]) }

// Waits says what to wait for in a state, besides the operation under way.
func (m *Machine) Waits(s State) []Wait {
	if s.Stage == Halted {
		return nil
	}
	var w []Wait
	until := func(t time.Time, e timeline.Edge) { w = append(w, Wait{Time: t, Edge: e}) }
	if !s.Held.IsZero() {
		until(m.Rules.Last(s.Held.End, m.Margin), m.Rules.EndBy)
		if !s.Rest.IsZero() {
			until(s.Rest, m.Rules.BeginBy)
		}
	}
	if s.Running && s.Held.IsZero() && !s.Overran {
		w = append(w, Wait{Local: s.Overdue})
	}
	if !s.Next.IsZero() {
		until(m.Rules.Last(s.Next.End, m.Margin), m.Rules.EndBy)
		if m.mayBegin(&s) {
			until(s.Next.Start, m.Rules.BeginBy)
		}
	}
	if s.Settled < s.Epoch && !s.Settle.IsZero() {
		until(s.Settle, timeline.Earliest)
	}
	if s.Stopping && !s.GivenUp && s.Pending == Nothing && (s.Stage == Checking || s.Stage == Sending) {
		if s.Sent.Kind == store.KindDone {
			w = append(w, Wait{Local: s.Closing.Until})
		} else {
			until(s.Sent.SlotEnd, timeline.Latest)
		}
	}
	switch {
	case s.Pending != Nothing:
	case s.Retry > 0:
		w = append(w, Wait{Local: s.Retry})
	case s.Stopping || s.Slot.IsZero() || m.through(&s):
	case s.Reaim > 0:
		w = append(w, Wait{Local: s.Reaim})
	case m.blocked(&s):
		until(m.leaves(&s), timeline.Mid)
	case s.Stage == Aiming:
		until(s.Turn, s.TurnEdge)
	}
	return w
}

// awaits reports that the user's code, which runs, must return before an act.
func (m *Machine) awaits(s *State, a Acts) bool { return s.Running && m.Rules.Await&a != 0 }

// mayBegin reports that what was won may begin as soon as its time has come.
func (m *Machine) mayBegin(s *State) bool {
	return s.Held.IsZero() && !m.awaits(s, Beginning) && !s.Resample && !s.Stopping
}

// blocked reports that the worker may claim nothing: user code overruns, or a
// slot is won that has not begun.
func (m *Machine) blocked(s *State) bool {
	return s.Held.IsZero() && m.awaits(s, Claiming) || !s.Next.IsZero()
}

// overrunning reports that user code runs although its lease is over.
func (s *State) overrunning() bool { return s.Held.IsZero() && s.Running }
