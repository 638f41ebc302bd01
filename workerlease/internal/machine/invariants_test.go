package machine_test

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// watcher takes a machine through its steps and checks what must hold whatever
// happens.
type watcher struct {
	m       machine.Machine
	s       machine.State
	running bool // the user's code
	live    bool // Allocate without Expire yet
	rests   bool // the user's code, until it is called again
	halted  bool

	head     store.Record // the newest thing that the machine was shown
	foreign  bool         // it contradicts what the machine was shown below it
	shown    bool
	shownIn  machine.Moment
	sent     map[store.Record]bool
	claims   map[string]machine.Claim
	ends     map[string]time.Time // by claim, of the grants sent
	attempts map[string]int       // that they count as
	worked   map[string]bool
	skipped  map[string]bool // nothing was begun under it after all
	released map[string]bool
	probed   store.Record
	notes    map[machine.What]int
	forgot   machine.Moment // when it noticed last that a record is gone
}

func newWatcher(m machine.Machine, s machine.State) *watcher {
	return &watcher{
		m: m, s: s, sent: map[store.Record]bool{}, claims: map[string]machine.Claim{}, ends: map[string]time.Time{}, attempts: map[string]int{},
		worked: map[string]bool{}, skipped: map[string]bool{}, released: map[string]bool{}, notes: map[machine.What]int{},
	}
}

// step is Machine.Step, checked.
func (w *watcher) step(at machine.Moment, e machine.Event) ([]machine.Action, error) {
	before := w.s
	after, actions := w.m.Step(before, at, e)
	again, repeated := w.m.Step(before, at, e)
	if after != again || !reflect.DeepEqual(actions, repeated) {
		return actions, errors.New("the same input gave two outputs")
	}
	w.see(before, at, e)
	w.s = after
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if w.halted && (len(actions) > 0 || before != after) {
		bad("something happened after Halt: %v", actions)
	}
	op := machine.Nothing
	for _, a := range actions {
		if o := opOf(a, after); o != machine.Nothing {
			if op != machine.Nothing {
				bad("two operations in one step: %v and %v", op, o)
			}
			op = o
		}
		if err := w.act(before, at, a); err != nil {
			errs = append(errs, err)
		}
	}
	switch {
	case op != machine.Nothing && op != after.Pending:
		bad("asked for %v, but %v is pending", op, after.Pending)
	case op == machine.Nothing && after.Pending != machine.Nothing && before.Pending != after.Pending:
		bad("%v is pending, but was not asked for", after.Pending)
	case op != machine.Nothing && before.Pending != machine.Nothing && !answers(e, before.Pending):
		bad("asked for %v while %v was pending", op, before.Pending)
	}
	if id := after.Bid.Claim.ID; id != "" {
		if c, ok := w.claims[id]; ok && c != after.Bid.Claim {
			bad("claim %v became %v", c, after.Bid.Claim)
		}
		w.claims[id] = after.Bid.Claim
	}
	if after.Hold.Running != w.running || !after.Hold.Held.IsZero() != w.live {
		bad("running %v, held %v; the user's code: running %v, live %v", after.Hold.Running, after.Hold.Held, w.running, w.live)
	}
	for _, t := range []machine.Term{after.Hold.Next, after.Hold.Held} {
		if w.released[t.Claim] {
			bad("%v is kept after its release was sent", t)
		}
	}
	return actions, errors.Join(errs...)
}

// see notes what the machine is about to be shown.
func (w *watcher) see(s machine.State, at machine.Moment, e machine.Event) {
	switch e := e.(type) {
	case machine.HeadRead:
		if e.Err == nil && s.Pending == machine.ReadingHead {
			records := e.Records
			if len(records) > 0 && records[0].Seq == 0 {
				records = records[1:]
			}
			w.head, w.foreign, w.shown, w.shownIn = store.Record{}, false, true, at
			if records = w.reached(records, s.View.Asked, at); len(records) > 0 {
				w.head = records[0]
			}
			if len(records) > 1 {
				w.foreign = w.contradicts(records[1], records[0], at)
			}
		}
	case machine.RecordRead:
		if e.Err == nil && s.Pending == machine.ReadingRecord {
			w.foreign = w.shown && w.contradicts(w.head, e.Record, at)
			w.head, w.shown, w.shownIn = e.Record, true, at
		}
		if e.Err == nil && s.Pending == machine.Probing {
			w.probed = e.Record
		}
	case machine.Appended:
		if e.Err == nil && s.Pending == machine.Appending {
			w.head, w.foreign, w.shown, w.shownIn = s.Bid.Record, false, true, at
		}
	case machine.Returned:
		w.running = w.running && w.live
	case machine.Rested:
		w.rests = w.live
	case machine.Skipped:
		w.skipped[s.Hold.Held.Claim] = w.live
		w.running, w.live = w.running && !w.live, false
	}
}

// act checks one action.
func (w *watcher) act(before machine.State, at machine.Moment, a machine.Action) error {
	switch a := a.(type) {
	case machine.Append:
		return w.append(before, at, a.Record)
	case machine.Trim:
		r := w.probed
		if a.Before != r.Seq || r.ReadAt.IsZero() || r.ReadAt.Add(w.m.Retention).After(at.Now.Earliest) || r.Check() != nil {
			return fmt.Errorf("trim before %d is not justified by %v", a.Before, r)
		}
	case machine.Allocate:
		t := a.Term
		switch {
		case w.running || w.live:
			return fmt.Errorf("allocated %v while code runs", t)
		case w.worked[t.Claim]:
			return fmt.Errorf("allocated %v again", t)
		case before.Stopping:
			return fmt.Errorf("allocated %v while stopping", t)
		case !machine.Standard.Inside(at.Now, t.Start, t.End, w.m.Margin):
			return fmt.Errorf("allocated %v outside, at %v", t, at.Now)
		case at.Jumps > before.Clock.Jumps:
			return fmt.Errorf("allocated %v in a jump", t)
		case t.Own && w.claims[t.Claim].ID != "" && w.claims[t.Claim].Epoch != at.Epoch:
			return fmt.Errorf("allocated %v, which was claimed by a clock that has jumped since", t)
		case t.Own && w.claims[t.Claim].ID == "":
			return fmt.Errorf("allocated %v, which is no claim of this worker", t)
		case !t.Own && w.m.Group == "":
			return fmt.Errorf("allocated %v, which is somebody else's", t)
		}
		w.running, w.live, w.worked[t.Claim] = true, true, true
	case machine.Extend:
		switch t := a.Term; {
		case !w.live || !w.worked[t.Claim] || !t.Own:
			return fmt.Errorf("extended %v, which is not worked under", t)
		case t.Claim != before.Hold.Held.Claim || t.Token != before.Hold.Held.Token || !t.Start.Equal(before.Hold.Held.Start) || !t.End.After(before.Hold.Held.End):
			return fmt.Errorf("extended %v to %v", before.Hold.Held, t)
		case before.Stopping || at.Lapsed != 0:
			return fmt.Errorf("extended %v after its end", t)
		}
	case machine.CallAgain:
		if !w.live || !w.rests {
			return errors.New("called code again that doesn't rest")
		}
		w.rests = false
	case machine.Expire:
		if !w.live {
			return errors.New("expired what was not allocated")
		}
		w.live, w.rests = false, false
	case machine.Halt:
		if w.running || w.live {
			return errors.New("halted while code runs")
		}
		w.halted = true
	case machine.Tell:
		w.notes[a.Note.What]++
		if a.Note.What == machine.Forgot && a.Note.Record.Seq != 0 {
			w.forgot = at
		}
		if n := a.Note; n.What == machine.Claimed || n.What == machine.Joined {
			c := before.Bid.Claim
			if c.ID == "" || at.Local-c.Local > w.m.Rules.ClaimAge {
				return fmt.Errorf("%v under a claim that is too old: %v", n.What, c)
			}
			if n.What == machine.Claimed && n.Record.Claim != c.ID {
				return fmt.Errorf("took %v for its own; its claim is %v", n.Record, c)
			}
		}
	}
	return nil
}

// append checks a record that is about to be sent.
func (w *watcher) append(before machine.State, at machine.Moment, r store.Record) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	if r.Truncated() != r {
		return fmt.Errorf("append: times are not whole milliseconds, UTC: %v", r)
	}
	// A record that is sent again was right when it was sent first.
	if w.sent[r] {
		if r.Kind == store.KindRelease && w.running && w.worked[r.Claim] && w.s.Hold.Held.Claim == r.Claim {
			return errors.New("release sent again while its code runs")
		}
		return nil
	}
	w.sent[r] = true
	head := w.head
	poison := w.poison(head, at) || w.foreign
	switch {
	case !w.shown || r.Seq != head.Seq+1:
		return fmt.Errorf("append: seq %d on head %d", r.Seq, head.Seq)
	case r.Kind != store.KindReset && poison:
		return fmt.Errorf("append on poison: %v", head)
	case r.ReadAt.Before(w.shownIn.Now.Latest) || !w.extends(r) && !r.ReadAt.Before(w.shownIn.Now.Latest.Add(time.Millisecond)):
		return fmt.Errorf("append: readAt %v, but the head was read at %v", r.ReadAt, w.shownIn.Now.Latest)
	}
	switch {
	case r.DoneUntil.Before(head.DoneUntil) && r.Kind != store.KindReset:
		return fmt.Errorf("append: %v forgets what is done in %v", r, head)
	case w.disobeys(r, at) != nil:
		return w.disobeys(r, at)
	case w.extends(r):
		return w.appendExtension(before, at, r)
	}
	switch r.Kind {
	case store.KindGrant:
		end, again := w.ends[r.Claim]
		w.ends[r.Claim] = r.WindowEnd
		w.attempts[r.Claim] = r.Attempt
		c := w.claims[r.Claim]
		if c.ID == "" { // fixed in an earlier step, or in this one
			c = w.s.Bid.Claim
		}
		switch {
		case r.WindowStart.Before(head.WindowEnd):
			return fmt.Errorf("grant %v overlaps head %v", r, head)
		case r.WindowStart.After(head.WindowEnd) && (w.shownIn.Now.Earliest.Before(head.WindowEnd) ||
			at.Epoch != w.shownIn.Epoch && at.Now.Earliest.Before(head.WindowEnd)):
			return fmt.Errorf("grant %v leaves a gap over the living %v", r, head)
		case r.WindowStart.After(at.Now.Latest.Add(w.m.Rules.Ahead)):
			return fmt.Errorf("grant %v is poison to others at %v", r, at.Now)
		case r.WindowEnd.Sub(r.WindowStart) > w.m.Rules.Longest:
			return fmt.Errorf("grant %v is too long", r)
		case r.Token <= head.Token || r.Token < r.WindowStart.UnixMilli():
			return fmt.Errorf("token %d after %d", r.Token, head.Token)
		case again && !end.Equal(r.WindowEnd), !r.WindowEnd.Equal(c.End), r.WindowStart.Before(c.Start):
			return fmt.Errorf("grant %v doesn't fit claim %v", r, c)
		case at.Age > w.m.Rules.Fresh:
			return fmt.Errorf("grant sent, but the newest sample is %v old", at.Age)
		case at.Local-c.Local > w.m.Rules.ClaimAge:
			return fmt.Errorf("grant sent, but its claim is too old: %v", c)
		case before.Stopping:
			return errors.New("grant sent while stopping")
		}
	case store.KindRelease:
		floor := max(w.shownIn.Now.Latest.UnixNano(), (head.Token+1)*int64(time.Millisecond))
		attempt := head.Attempt
		if begun := w.worked[r.Claim] && !w.skipped[r.Claim]; w.m.Once && !begun && attempt > 0 && attempt == w.attempts[r.Claim] {
			attempt-- // It never began, and it is over by now, or is given back.
			floor = min(floor, max(head.WindowEnd.UnixNano(), (head.Token+1)*int64(time.Millisecond)))
		}
		switch {
		case w.m.Group != "":
			return errors.New("release of a group's term")
		case r.Claim != head.Claim || w.claims[r.Claim].ID == "":
			return fmt.Errorf("release of a term that isn't one's own: %v on %v", r, head)
		case w.running && w.worked[r.Claim]:
			return errors.New("release while code runs")
		case r.Attempt != attempt:
			return fmt.Errorf("release %v counts attempt %d, want %d", r, r.Attempt, attempt)
		case !r.WindowStart.Equal(r.WindowEnd), r.Token != head.Token, r.WindowStart.After(head.WindowEnd), attempt == head.Attempt && !r.WindowStart.Before(head.WindowEnd),
			r.WindowStart.UnixNano() < floor, r.WindowStart.UnixNano() >= floor+int64(time.Millisecond):
			return fmt.Errorf("release %v of head %v at %v", r, head, at.Now)
		}
		w.released[r.Claim] = true
	case store.KindReset:
		wait := max(w.m.Rules.Patience, min(slotLength(before.Bid.Slot), 24*time.Hour))
		switch {
		case at.Local-w.s.View.Watch.From < wait, w.s.View.Watch.Seq != head.Seq:
			return fmt.Errorf("reset of what was not watched long enough: %v at %v", w.s.View.Watch, at.Local)
		case r.WindowStart.Before(w.shownIn.Now.Latest):
			return fmt.Errorf("reset in the past: %v at %v", r, at.Now)
		}
	case store.KindDone, store.KindOutcome:
		_, tells := r.Outcome()
		if lost, is := r.Lost(); is && r.Kind == store.KindOutcome {
			// Not before its window is over: by the local clock, since the store's may have been put back since then.
			tells = lost.Seq != 0 && at.Local >= w.forgot.Local+w.forgot.Now.Until(lost.End, timeline.Earliest)
		}
		switch {
		case !r.WindowStart.Equal(head.WindowEnd), !r.WindowEnd.Equal(head.WindowEnd), r.Claim != head.Claim,
			r.InstanceID != head.InstanceID, r.Group != head.Group, r.Token != head.Token:
			return fmt.Errorf("%s record %v changes the term of %v", r.Kind, r, head)
		case r.Metadata != "" && !tells, r.Kind == store.KindOutcome && !tells:
			return fmt.Errorf("%s record tells %q", r.Kind, r.Metadata)
		case r.Kind == store.KindOutcome && (head.Kind == store.KindRelease || !r.DoneUntil.Equal(head.DoneUntil)):
			return fmt.Errorf("outcome record %v after %v", r, head)
		case r.Kind == store.KindOutcome:
		case !r.DoneUntil.After(head.DoneUntil):
			return fmt.Errorf("done record %v says nothing new behind %v", r, head)
		}
	default:
		return fmt.Errorf("append of kind %q", r.Kind)
	}
	return nil
}

// extends reports that a record extends a term that was worked under.
func (w *watcher) extends(r store.Record) bool { return r.Kind == store.KindGrant && w.worked[r.Claim] }

// appendExtension checks an extension that is about to be sent.
func (w *watcher) appendExtension(before machine.State, at machine.Moment, r store.Record) error {
	head, held := w.head, w.s.Hold.Held
	switch {
	case !w.live || held.Claim != r.Claim || w.released[r.Claim]:
		return fmt.Errorf("extension %v of a term that was left", r)
	case !r.WindowStart.Equal(held.End), r.Token != held.Token, r.InstanceID != w.m.InstanceID, r.Group != "":
		return fmt.Errorf("extension %v of %v", r, held)
	case head.Claim != r.Claim || head.Kind == store.KindRelease || !head.WindowEnd.Equal(held.End):
		return fmt.Errorf("extension %v behind another's term: %v", r, head)
	case at.Age > w.m.Rules.Fresh:
		return fmt.Errorf("extension sent, but the newest sample is %v old", at.Age)
	case at.Local-w.s.Bid.Claim.Local > w.m.Rules.ClaimAge:
		return fmt.Errorf("extension sent, but its claim is too old: %v", w.s.Bid.Claim)
	case before.Stopping:
		return errors.New("extension sent while stopping")
	}
	return nil
}

func slotLength(s slots.Slot) time.Duration {
	if s.IsZero() {
		return 0
	}
	return s.Length()
}

// idle checks that a worker that waits does wait: no time that it waits for has
// come, so that it doesn't spin.
func (w *watcher) idle(at machine.Moment) error {
	for _, wait := range w.m.Waits(&w.s) {
		due := at.Local >= wait.Local
		if !wait.Time.IsZero() {
			due = at.Now.Known() && at.Now.Until(wait.Time, wait.Edge) == 0
		}
		if due {
			return fmt.Errorf("a wait is due: %v, at %v", wait, at.Now)
		}
	}
	if w.s.Pending == machine.Nothing && !w.halted && !w.s.Stopping && !w.s.Eligibility.Asking && len(w.m.Waits(&w.s)) == 0 {
		return errors.New("nothing is under way, and nothing waited for")
	}
	return nil
}

// opOf is the operation that an action begins.
func opOf(a machine.Action, after machine.State) machine.Op {
	switch a.(type) {
	case machine.Sample:
		return machine.Sampling
	case machine.ReadHead:
		return machine.ReadingHead
	case machine.ReadRecord:
		if after.Pending == machine.Probing {
			return machine.Probing
		}
		return machine.ReadingRecord
	case machine.Append:
		return machine.Appending
	case machine.Trim:
		return machine.Trimming
	case machine.Sight:
		return machine.Sighting
	}
	return machine.Nothing
}

// answers reports whether an event is what came of an operation.
func answers(e machine.Event, op machine.Op) bool {
	switch e.(type) {
	case machine.Sampled:
		return op == machine.Sampling
	case machine.HeadRead:
		return op == machine.ReadingHead
	case machine.RecordRead:
		return op == machine.ReadingRecord || op == machine.Probing
	case machine.Appended:
		return op == machine.Appending
	case machine.Trimmed:
		return op == machine.Trimming
	case machine.Sighted:
		return op == machine.Sighting
	}
	return false
}
