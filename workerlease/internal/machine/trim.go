package machine

import "github.com/slotlease/slotlease/store"

// trim goes on with trimming while the worker waits for a slot that it has won,
// and reports whether an operation is under way. Records below one that was made
// long enough ago may go: nobody can still be about to append to their keys.
func (x *step) trim() bool {
	s := &x.s
	if s.Trim == 0 {
		return false
	}
	if s.Trim < 1 || s.Next.IsZero() || !x.at.Now.Mid().Before(s.Next.Start) {
		s.Trim = 0
		return false
	}
	x.ask(Probing, ReadRecord{s.Trim})
	return true
}

// probed takes in a record that may justify trimming all below it: later ones
// are nearer to now, so go back in growing steps.
func (x *step) probed(e RecordRead) {
	s := &x.s
	r := e.Record
	switch {
	case e.Err != nil, r.Seq != s.Trim:
		s.Trim = 0
	case x.justifies(r):
		x.ask(Trimming, Trim{r.Seq})
	default:
		s.Trim -= s.TrimStep
		s.TrimStep *= 2
		s.Trim = max(s.Trim, 0)
	}
}

// justifies reports that everything before r was in the ledger longer ago than
// the retention.
func (x *step) justifies(r store.Record) bool {
	return r.CheckEnvelope() == nil && !r.ReadAt.IsZero() &&
		!x.at.Now.Earliest.Before(r.ReadAt.Add(x.m.Retention))
}

// trimmed takes in how many records went. A full batch means that there are
// more, for as long as there is time before the boundary.
func (x *step) trimmed(e Trimmed) {
	s := &x.s
	if e.Err != nil {
		x.tell(Note{What: Failed, Op: Trimming, Err: e.Err})
		s.Trim = 0
		return
	}
	if e.Count > 0 {
		x.tell(Note{What: Cleared, Count: e.Count})
	}
	if e.Count < store.TrimBatch {
		s.Trim = 0
	}
}
