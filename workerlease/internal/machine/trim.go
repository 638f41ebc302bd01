package machine

import "github.com/slotlease/slotlease/store"

// trim goes on with trimming while the worker waits for a slot that it has won,
// and reports whether an operation is under way.
func (x *step) trim() bool {
	s := &x.s
	if s.Trim == 0 {
		return false
	}
	if s.Trim < 1 || !x.idle() {
		s.Trim = 0
		return false
	}
	x.ask(Probing, ReadRecord{s.Trim})
	return true
}

// idle reports that nothing has to be done before long: a slot that was won has not
// begun, or nothing is due for a while yet.
func (x *step) idle() bool {
	s, mid := &x.s, x.at.Now.Mid()
	if !s.Next.IsZero() {
		return mid.Before(s.Next.Start)
	}
	return (x.m.Continuous || x.m.Failover > 0) && s.Held.Own && s.Stage == Aiming && s.Turn.Sub(mid) > 2*x.m.Timeout(*s)
}

// probed takes in a record that may justify trimming all below it: later ones
// are nearer to now, so go back in growing steps.
func (x *step) probed(e RecordRead) {
	s := &x.s
	below := x.m.Rules.TrimBelow(e.Record, x.at.Now, x.m.Retention)
	switch {
	case e.Err != nil, e.Record.Seq != s.Trim:
		s.Trim = 0
	case below > 0:
		x.ask(Trimming, Trim{below})
	default:
		s.Trim -= s.TrimStep
		s.TrimStep *= 2
		s.Trim = max(s.Trim, 0)
	}
}

// trimmed takes in how many records went. A full batch means that there are
// more, for as long as there is time before the boundary.
func (x *step) trimmed(e Trimmed) {
	s := &x.s
	if e.Err != nil {
		x.note(Note{What: Failed, Op: Trimming, Err: e.Err})
		s.Trim = 0
		return
	}
	if e.Count > 0 {
		x.note(Note{What: Cleared, Count: e.Count})
	}
	if e.Count < store.TrimBatch {
		s.Trim = 0
	}
}
