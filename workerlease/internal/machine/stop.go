package machine

import (
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// beginStop takes in that leasing is to end: the user's code first.
func (x *step) beginStop() {
	s := x.s
	if s.Stopping {
		return
	}
	s.Stopping = true
	s.Retries = Retries{}
	if s.Hold.holding() {
		x.expire(Stopping)
	}
	if s.Bid.Stage != Checking && s.Pending != Appending {
		s.Bid.drop()
	}
}

// unwanted stops a worker for whose lease nobody waits any more. That is given back, and was no attempt.
func (x *step) unwanted() {
	if t := x.s.Hold.Left; x.giveBack(t, true) { // not any more once it stops
		x.s.Bid.VoidClaim = t.Claim
	}
	x.beginStop()
}

// stop goes on with stopping: learn the outcome of the last append, wait for the user's
// code, release, halt.
func (x *step) stop() {
	s := x.s
	appending := s.Bid.Stage == Checking || s.Bid.Stage == Sending
	if x.at.Local >= s.Closing.Until {
		s.Closing = Closing{}
	}
	switch {
	case s.Pending != Nothing:
	case s.GivenUp:
		x.halt()
	case appending && x.nothingToFree():
		s.Bid.drop()
		x.stop()
	case !appending && !x.m.awaits(s, Releasing) && !x.left() && !x.closing():
		if !x.lastWord() {
			x.halt()
		}
	case x.backingOff():
	case s.Bid.Stage == Checking:
		x.ask(ReadingRecord, ReadRecord{s.Bid.Record.Seq})
	case s.Bid.Stage == Sending && !s.Bid.grants() && s.Bid.Record.Kind != store.KindReset:
		x.append()
	case x.m.awaits(s, Releasing):
		x.lookMeanwhile()
	default:
		x.readHead()
	}
}

// nothingToFree reports that, whatever the outcome of the append, nothing is left to
// free, or no time is left to record that work is done.
func (f facts) nothingToFree() bool {
	r := &f.s.Bid.Record
	if r.Kind == store.KindDone {
		return !f.closing()
	}
	tried := r.Kind == store.KindOutcome // once, and at once
	return !tried && !f.at.Now.Latest.Before(f.s.Bid.frees())
}

// frees is up to when the record under way may leave something to free: the end of its slot or, if its term goes on
// over that, of its window, or of the one that it releases.
func (b *Bid) frees() time.Time {
	end := later(b.Record.SlotEnd, b.Record.WindowEnd)
	if b.Below.Claim == b.Record.Claim {
		end = later(end, b.Below.WindowEnd)
	}
	return end
}

// stopsBy is when a worker that stops gives up what it is about. It doesn't give up user
// code.
func (m *Machine) stopsBy(s *State) []Wait {
	appending := s.Bid.Stage == Checking || s.Bid.Stage == Sending
	switch left := s.Hold.unreleased(time.Time{}); {
	case appending && s.Bid.Record.Kind == store.KindOutcome:
		return nil // It is tried at once.
	case appending && s.Bid.Record.Kind != store.KindDone:
		return []Wait{{Time: s.Bid.frees(), Edge: timeline.Latest}}
	case appending, !m.awaits(s, Releasing) && s.Closing.Claim != "":
		return []Wait{{Local: s.Closing.Until}}
	case !m.awaits(s, Releasing) && !left.IsZero() && !s.Triggers.Trying: // else that ends later, and is heard of
		return []Wait{{Time: left.End, Edge: timeline.Latest}}
	default:
		return nil
	}
}

// halt ends the worker, once the user's code has returned.
func (x *step) halt() {
	s := x.s
	if s.Hold.Running || s.Triggers.Trying {
		return
	}
	s.Bid.Stage, s.Hold.Next, s.Hold.Left = Halted, Term{}, Term{}
	x.do(Halt{})
}

// left reports that there is a term to release, if it is in the head.
func (f facts) left() bool {
	t := f.s.Hold.unreleased(f.at.Now.Latest)
	return !t.IsZero() && f.m.Rules.Releasable(store.Record{Claim: t.Claim}, f.m.identity(t.Claim))
}

// Unreleased reports that there is a term to release, or that an append of unknown outcome
// may have made or released one; latest is Latest(now).
func (s *State) Unreleased(latest time.Time) bool {
	appending := (s.Pending == Appending || s.Bid.Stage == Checking) && s.Bid.Record.Kind != store.KindOutcome
	return s.Hold.holding() || !s.Hold.unreleased(latest).IsZero() || s.Bid.VoidClaim != "" || appending
}

// surrender releases the term in the head, if it is one's own. Below are the records below it.
func (x *step) surrender(head store.Record, below []store.Record, obeyed bool) {
	s := x.s
	s.Closing.Release = s.Closing.Release && s.Closing.Unbegun // Whatever is left is released now.
	if obeyed && x.closeSlot(head) {
		return
	}
	if head.Seq == 0 && x.closing() {
		s.Bid.Stage = Aiming // The read may have been stale.
		return
	}
	s.Closing = Closing{}
	t := s.Hold.unreleased(x.at.Now.Latest)
	// A worker that stops begins nothing any more: neither term is worked under again,
	// whatever the reply to the release.
	s.Hold.Next, s.Hold.Left = Term{}, Term{}
	if !obeyed || !x.releasable(head, t.Claim) {
		s.Bid.Stage = Aiming
		r := x.telling
		if r == nil {
			r = &s.Report
			r.Tries++
		}
		if obeyed {
			x.tell(r, head, below)
		}
		return
	}
	x.release(head)
}
