package machine

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// What came of the work of a slot is for people who look. It travels in the record that says the slot
// is done, or that gives the rest of it to others. A record is appended for it alone only if there is something
// to tell, nothing else is appended, and the worker has nothing to do for longer than that can take.

// Work is what came of the user's code, as far as its caller knows.
type Work struct {
	Error    string      // the beginning of the error's text
	Cause    store.Cause // why it failed, if it did not end by itself
	Output   string      // the end of what it wrote
	ExitCode int         // means nothing unless Exited is set
	Exited   bool
	Took     time.Duration // 0: since the lease, or the slot, began
}

// Report is what is to be told of the work of a slot.
type Report struct {
	Metadata string    // of the record that tells it; "": there is nothing to tell
	Claim    string    // of the term under which the work was done
	Slot     time.Time // start of the slot

	Until   time.Duration // the local reading up to which that is tried again
	Latest  time.Duration // and up to which it is tried at all
	After   time.Duration // the local reading before which it isn't tried
	Tries   int
	Key     int64  // the lowest at which it may have been stored, or may yet be; 0: there is none
	Looking bool   // the head is read for it
	Early   bool   // the code still runs, and why it was ended is told in time for others to know that it is nobody's failure
	Spared  bool   // and was told so: what came of it is told once more, with what it wrote
	Last    string // what is to be told once more, by its Metadata, while it isn't known whether the first word is stored
}

// reports are all that is to be told, in that order.
func (s *State) reports() [3]*Report {
	return [...]*Report{&s.Report, &s.Death.Report, &s.Missing.Report}
}

// mostTelling is how long an operation may take that only tells what came of work. A worker that stops waits for
// it.
const mostTelling = 5 * time.Second

// telling reports that the operation under way only tells what came of work.
func (s *State) telling() bool {
	return s.lookingFor() != nil && s.Pending == ReadingHead || s.Bid.Record.Kind == store.KindOutcome && s.Pending == Appending
}

// lookingFor is what the head is read for; nil: for something else.
func (s *State) lookingFor() *Report {
	for _, r := range s.reports() {
		if r.Looking {
			return r
		}
	}
	return nil
}

// outcome is what came of the work of a slot under a term, which that ends or not.
func (f facts) outcome(t Term, slot slots.Slot, failed, ends bool, w Work) store.Outcome {
	o := store.Outcome{
		Result: store.Succeeded, Error: w.Error, Output: w.Output, ExitCode: w.ExitCode, Exited: w.Exited,
		InstanceID: f.m.InstanceID, Attempt: t.Attempt, SlotStart: slot.Start, SlotEnd: slot.End,
	}
	if failed {
		o.Result, o.Cause = store.Failed, w.Cause
		o.GivenUp = ends && !f.m.Rules.Spares(o) && f.m.LastAttempt(t.Attempt-t.Spared)
	}
	if f.at.Now.Known() {
		mid := f.at.Now.Mid()
		o.Begun, o.Ended = mid.Add(-w.Took), mid
		if w.Took == 0 {
			o.Begun = later(mid.Add(f.s.Hold.Began-f.at.Local), o.SlotStart)
		}
	}
	return o
}

// report takes in what came of work, to be told.
func (x *step) report(t Term, slot slots.Slot, failed, ends bool, w Work) {
	o := x.outcome(t, slot, failed, ends, w)
	x.reportOutcome(t.Claim, slot, o)
	if o.GivenUp {
		x.giveUp(slot, t.Attempt-t.Spared)
	}
}

// reportOutcome has what came of work under a claim told, within a slot.
func (x *step) reportOutcome(claim string, slot slots.Slot, o store.Outcome) {
	x.s.Report = x.reportOf(claim, slot, o)
}

func (f facts) reportOf(claim string, slot slots.Slot, o store.Outcome) Report {
	left := max(slot.End.Sub(f.at.Now.Mid()), 0)
	return Report{
		Metadata: o.Metadata(), Claim: claim, Slot: o.SlotStart,
		Until: f.at.Local + left, Latest: f.at.Local + left + slot.Length(),
	}
}

// reported reports that something of a slot, under a term, was taken in already.
func (r *Report) reported(t Term, slot slots.Slot) bool {
	return r.Claim == t.Claim && r.Slot.Equal(slot.Start)
}

// pass ends the waits for the next try whose time has come.
func (s *State) pass(local time.Duration) {
	for _, r := range s.reports() {
		if r.After <= local {
			r.After = 0
		}
	}
}

// tellWaits is what to wait for because of what is to be told.
func (m *Machine) tellWaits(s *State) (w []Wait) {
	for _, r := range s.reports() {
		if r.Metadata != "" && r.After > 0 && s.Pending == Nothing && (!s.Stopping || m.awaits(s, Releasing)) {
			w = append(w, Wait{Local: r.After})
		}
	}
	return w
}

// told forgets what was to be told, but for what it was about, and for a last word.
func (r *Report) told() {
	*r = Report{Claim: r.Claim, Slot: r.Slot, Spared: r.Early || r.Spared, Metadata: r.Last, Until: r.Until, Latest: r.Latest}
}

// worked takes in what came of work that closes no slot: it failed after its lease.
func (x *step) worked(e Worked) {
	h := &x.s.Hold
	for _, t := range []Term{h.Held, h.Left} {
		if t.IsZero() || t.Claim != e.Claim {
			continue
		}
		r := &x.s.Report
		was := *r
		sent := was.Key != 0 || r.in(x.s.Bid.Record)
		switch reported := r.reported(t, t.Slot); {
		case !reported, was.Early && !sent, was.Spared && was.Metadata == "":
			x.report(t, t.Slot, e.Failed, e.Work.Cause != "", e.Work)
			if reported { // Other code may run on under the lease.
				r.Early, r.Spared, r.After = was.Early, was.Spared, was.After
			}
		case was.Early:
			r.Last, r.After = x.outcome(t, t.Slot, e.Failed, e.Work.Cause != "", e.Work).Metadata(), 0
		default:
			x.wrote(e.Work.Output)
		}
		if e.Failed && e.Work.Cause == store.SlotEnded {
			x.troubled(t.Slot, CodeFailed)
		}
		h.Began = x.at.Local // What comes next begins now.
		return
	}
}

// wrote adds what the work wrote to what is yet to be told of it: it was cut short, and is known only when it has ended. What is on
// its way stays as it is, or it would be told once more.
func (x *step) wrote(output string) {
	r := &x.s.Report
	o, is := store.Record{Kind: store.KindOutcome, Metadata: r.Metadata}.Outcome()
	if is && r.Key == 0 && !r.in(x.s.Bid.Record) && output != "" {
		o.Output = output
		r.Metadata = o.Metadata()
	}
}

// carried is the Metadata of a record that ends the term of a claim.
func (f facts) carried(claim string) string {
	if f.s.Report.Claim != claim {
		return ""
	}
	return f.s.Report.Metadata
}

// tells is what the head is to be read for, to tell it; nil: for nothing.
func (f facts) tells() *Report {
	r := f.tellable()
	if r == nil || f.s.Bid.Stage != Aiming || !f.room(ReadingHead, Appending) {
		return nil
	}
	return r
}

// tellable is what is to be told now, while nothing else is appended that tells it; nil: nothing is.
func (f facts) tellable() *Report {
	for _, r := range f.s.reports() {
		if f.open(r) && r.After == 0 && (f.meanwhile(r) && f.quick() || !f.closes(r.Claim)) {
			return r
		}
	}
	return nil
}

// open reports that something is yet to be told, and it isn't too late for that.
func (f facts) open(r *Report) bool {
	late := f.at.Local >= r.Latest || f.at.Local >= r.Until && r.Tries > 0
	return r.Metadata != "" && !late
}

// closes reports that a record is to come that ends the term of a claim.
func (f facts) closes(claim string) bool {
	c := &f.s.Closing
	return !c.Done.IsZero() || c.Release && c.Claim == claim
}

// room reports that operations, one after the other, can be given up before anything else is due.
func (f facts) room(ops ...Op) bool {
	s := f.s
	due := f.at.Now.Latest
	for _, op := range ops {
		due = due.Add(min(f.m.timeoutOf(s, op), mostTelling))
	}
	switch {
	case f.m.through(s) || s.Bid.Slot.IsZero():
		return false
	case !s.Hold.Next.IsZero() && !due.Before(s.Hold.Next.Start):
		return false
	}
	return f.m.blocked(s) || due.Before(f.m.begins(s))
}

// look reads the head, to tell something by the record after it.
func (x *step) look(r *Report) {
	x.try(r)
	r.Looking = true
	x.readHead()
}

// try counts a try to tell something, and puts the next one off.
func (x *step) try(r *Report) {
	wait := min(x.m.MinBackoff<<min(r.Tries, 10), x.m.MaxBackoff, max(x.slotLength()/8, 10*time.Millisecond))
	wait -= time.Duration(float64(wait/2) * x.fraction())
	r.Tries++
	r.After = x.at.Local + max(wait, time.Millisecond)
}

// lookedInVain takes in that the head could not be read. What comes next is not put off by that.
func (x *step) lookedInVain(err error) {
	x.note(Note{What: Failed, Op: ReadingHead, Err: err})
	x.s.Bid.Stage = Aiming
	x.untold()
}

// tell prepares the record that tells what came of the work of a slot, and reports whether there is one.
// Below are the records below the head, newest first, as far as they were read.
func (x *step) tell(r *Report, head store.Record, below []store.Record) bool {
	oldest := head
	if len(below) > 0 {
		oldest = below[len(below)-1]
	}
	switch {
	case r.Metadata == "" || head.Seq == 0 || !x.at.Now.Known():
		return false
	case r.mayLand(head, below), r == &x.s.Death.Report && x.s.Death.Seq+1 < oldest.Seq, r == &x.s.Missing.Report && x.s.Missing.Was.Seq < oldest.Seq:
		r.told() // It may stand further down, as may what one has released who was taken for dead, or what is said to be gone.
		return false
	case head.Seq+1 < r.Key:
		return false // The read was stale, or the store has lost records: it may land above this head yet.
	case ledger.Supersedes(head), head.Kind == store.KindRelease:
		return false // When the next one may claim depends on what the head is.
	}
	record := x.m.Rules.Repeat(x.stamped(store.KindOutcome, head.Seq+1), head)
	record.Metadata = r.Metadata
	x.settles(&record)
	x.spares(&record)
	x.s.Bid.send(record, head)
	return true
}

// mayLand reports that it was sent to a key below the head at which no record was read: it may stand there, or land there yet.
func (r *Report) mayLand(head store.Record, below []store.Record) bool {
	at := func(record store.Record) bool { return record.Seq == r.Key }
	return r.Key != 0 && r.Key <= head.Seq && !at(head) && !slices.ContainsFunc(below, at)
}

// recount takes in that what is to be told was told by an append of unknown outcome: it is among the newest records.
func (x *step) recount(head store.Record, below []store.Record) {
	for _, r := range x.s.reports() {
		if r.in(head) || slices.ContainsFunc(below, r.in) {
			r.told()
			x.moveUp(head)
		}
	}
	x.hearWord(head, below)
	if r := &x.s.Report; r.Early && (r.Last != "" || r.Key != 0) {
		told := slices.ContainsFunc(append([]store.Record{head}, below...), x.sparesOwn)
		if r.Spared = r.Spared || told; r.Last != "" {
			r.turns()
		}
	}
}

// outcomeSent takes in the reply to the append of a record that tells an outcome alone. Nothing else waits
// for it: if it isn't known to be stored, the worker looks again when it has time. A record is not sent
// twice to different keys: the earlier one can be stored only at its own, and that is looked at first.
func (x *step) outcomeSent(o Outcome, e Appended) {
	s := x.s
	sent := s.Bid.Record
	switch o {
	case Landed:
		s.Retries.over()
		x.outcomeStored(sent)
		return
	case Taken:
		x.note(Note{What: Conflict, Slot: s.Bid.Slot, Record: sent, Err: e.Err})
		s.sent(sent) // A driver may have sent it twice.
	case OutcomeUnknown:
		x.note(Note{What: Unknown, Slot: s.Bid.Slot, Record: sent, Err: e.Err})
		s.sent(sent)
	case NotStored, Unfounded:
		x.note(Note{What: Failed, Op: Appending, Err: e.Err})
	case Refused:
		x.note(Note{What: Failed, Op: Appending, Err: e.Err})
		s.told(sent)
	}
	x.aimAgain()
	x.untold()
}

// in reports that a record tells it.
func (r *Report) in(record store.Record) bool {
	return r.Metadata != "" && record.Kind != store.KindGrant && record.Metadata == r.Metadata
}

// sent notes that a record may have been stored, or may yet be.
func (s *State) sent(record store.Record) {
	for _, r := range s.reports() {
		if r.in(record) && (r.Key == 0 || record.Seq < r.Key) {
			r.Key = record.Seq
		}
	}
}

// told forgets what a record tells.
func (s *State) told(record store.Record) {
	for _, r := range s.reports() {
		if r.in(record) {
			r.told()
		}
	}
}

// outcomeStored takes in that a record which tells an outcome alone is in the ledger. Another may be to be told
// by now. What was stored long after the head was read may lie at a key that was trimmed meanwhile.
func (x *step) outcomeStored(r store.Record) {
	x.s.told(r)
	x.know(r)
	if x.at.Local-x.s.View.HeadReadAt.Local <= x.m.Rules.ClaimAge {
		x.observeRecord(r)
		x.moveUp(r)
	}
	x.aimAgain()
}

// moveUp notes that a record which changes no term is the head, to which the next extension is appended.
func (x *step) moveUp(r store.Record) {
	for _, t := range []*Term{&x.s.Hold.Held, &x.s.Hold.Next} {
		if r.Claim == t.Claim && r.WindowEnd.Equal(t.End) {
			t.Seq, t.Kind = r.Seq, r.Kind
		}
	}
}

// aimAgain turns back to waiting for what the bid waits for.
func (x *step) aimAgain() {
	b := &x.s.Bid
	b.Stage, b.Record, b.Below = Aiming, store.Record{}, store.Record{}
}
