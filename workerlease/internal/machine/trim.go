package machine

import "github.com/slotlease/slotlease/store"

// Upkeep is the search for a record that justifies trimming the ones below it.
type Upkeep struct {
	Probe int64 // the next key to look at; 0: none
	Step  int64 // how far below it the one after lies
}

// back goes to an older record. The newer ones are too young, so the steps grow.
func (u *Upkeep) back() {
	u.Probe = max(u.Probe-u.Step, 0)
	u.Step *= 2
}

// end ends the search.
func (u *Upkeep) end() { u.Probe = 0 }

// trim goes on with trimming while the worker waits for a slot that it has won,
// and reports whether an operation is under way.
func (x *step) trim() bool {
	u := &x.s.Upkeep
	if u.Probe == 0 {
		return false
	}
	if u.Probe < 1 || !x.idle() {
		u.end()
		return false
	}
	x.ask(Probing, ReadRecord{u.Probe})
	return true
}

// idle reports that nothing is due before long: a slot that was won has not begun, or
// nothing is due for a while yet.
func (f facts) idle() bool {
	s, mid := f.s, f.at.Now.Mid()
	if !s.Hold.Next.IsZero() {
		return mid.Before(s.Hold.Next.Start)
	}
	return (f.m.Continuous || f.m.Failover > 0) && s.Hold.Held.Own && s.Bid.Stage == Aiming && f.m.begins(s).Sub(mid) > 2*f.m.Timeout(s)
}

// probed takes in a record that may justify trimming all below it.
func (x *step) probed(e RecordRead) {
	u := &x.s.Upkeep
	below := x.m.Rules.TrimBelow(e.Record, x.at.Now, x.m.Retention)
	switch {
	case e.Err != nil, e.Record.Seq != u.Probe:
		u.end()
	case below > 0:
		x.ask(Trimming, Trim{below})
	default:
		u.back()
	}
}

// trimmed takes in how many records were deleted. A full batch means that there are
// more, for as long as there is time before the boundary.
func (x *step) trimmed(e Trimmed) {
	if e.Err != nil {
		x.note(Note{What: Failed, Op: Trimming, Err: e.Err})
		x.s.Upkeep.end()
		return
	}
	if e.Count > 0 {
		x.note(Note{What: Cleared, Count: e.Count})
	}
	if e.Count < store.TrimBatch {
		x.s.Upkeep.end()
	}
}
