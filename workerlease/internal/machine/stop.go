package machine

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// beginStop takes in that leasing is to end: the user's code first.
func (x *step) beginStop() {
	s := &x.s
	if s.Stopping {
		return
	}
	s.Stopping = true
	s.Failures, s.Tries, s.Retry, s.Probe = 0, 0, 0, false
	if !s.Held.IsZero() {
		x.expire(Stopping)
	}
	if s.Stage != Checking && s.Pending != Appending {
		s.drop()
	}
}

// stop goes on with stopping: learn what became of the last append, wait for
// the user's code, release, halt.
func (x *step) stop() {
	s := &x.s
	switch {
	case s.Pending != Nothing:
	case s.GivenUp:
		x.halt()
	case (s.Stage == Checking || s.Stage == Sending) && x.nothingToFree():
		s.drop()
		x.stop()
	case x.backingOff():
	case s.Stage == Checking:
		x.ask(ReadingRecord, ReadRecord{s.Sent.Seq})
	case s.Stage == Sending && (s.Sent.Kind == store.KindRelease || s.Sent.Kind == store.KindDone):
		x.ask(Appending, Append{s.Sent})
	case x.m.awaits(s, Releasing):
	case !x.left() && !x.closing():
		x.halt()
	default:
		x.readHead()
	}
}

// vain reports that whatever becomes of the append, there is nothing left to free, or
// no time left to tell what is done.
func (x *step) nothingToFree() bool {
	s := &x.s
	if s.Sent.Kind == store.KindDone {
		return !x.closing()
	}
	return !x.at.Now.Latest.Before(s.Sent.SlotEnd)
}

// halt ends the worker, once the user's code has returned.
func (x *step) halt() {
	if x.s.Running {
		return
	}
	x.s.Stage, x.s.Next, x.s.Left = Halted, Term{}, Term{}
	x.do(Halt{})
}

// rest is the term that could be released: the one in the head, if any, is
// the newest.
func (s *State) rest(latest time.Time) Term {
	for _, t := range []Term{s.Next, s.Left} {
		if t.Own && latest.Before(t.End) {
			return t
		}
	}
	return Term{}
}

// left reports that there is a term to release, if it is in the head.
func (x *step) left() bool {
	t := x.s.rest(x.at.Now.Latest)
	return !t.IsZero() && x.m.Rules.Releasable(store.Record{Claim: t.Claim}, x.m.identity(t.Claim))
}

// surrender releases the term in the head, if it is one's own.
func (x *step) surrender(head store.Record) {
	s := &x.s
	s.Closing.Release = false // Whatever is left is released now.
	if x.poison(head) == nil && x.closeSlot(head) {
		return
	}
	if head.Seq == 0 && x.closing() {
		s.Stage = Aiming // It may have been stale.
		return
	}
	s.Closing = Closing{}
	t := s.rest(x.at.Now.Latest)
	unbegun := t.Claim == s.Next.Claim
	// Whoever stops begins nothing any more: neither is worked under again, whatever the
	// reply to the release.
	s.Next, s.Left = Term{}, Term{}
	if x.poison(head) != nil || !x.release(head, t.Claim) {
		s.Stage = Aiming
	} else if unbegun {
		s.Sent.Attempt = max(0, s.Sent.Attempt-1)
	}
}

// release prepares the record that frees the rest of the head's term, and
// nothing else. It reports whether that is the claim's, and anything is left.
func (x *step) release(head store.Record, claim string) bool {
	at := x.m.Rules.ReleaseAt(head, x.at.Now)
	if !x.m.Rules.Releasable(head, x.m.identity(claim)) || !at.Before(head.WindowEnd) {
		return false
	}
	r := x.stamped(store.KindRelease, head.Seq+1)
	r.Claim, r.Token = head.Claim, head.Token
	r.SlotStart, r.SlotEnd = head.SlotStart, head.SlotEnd
	if !at.Before(head.SlotEnd) { // it is for information, and makes no sense here
		r.SlotStart, r.SlotEnd = head.WindowStart, head.WindowEnd
	}
	r.WindowStart, r.WindowEnd = at, at
	x.s.Sent, x.s.Stage = r, Sending
	return true
}
