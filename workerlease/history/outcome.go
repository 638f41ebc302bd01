package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/gap"
)

// outcome attaches what a record says of the work of a slot to the entry of the term under which that was
// done, and reports whether there is one.
func (h *reader) outcome(r store.Record) (attached bool) {
	o, ok := r.Outcome()
	if !ok {
		return false
	}
	e := h.worked(o)
	if e == nil {
		return false
	}
	lives := e.State == Done || e.State == Released || e.OutcomeKnown && e.Cause != store.WorkerDied
	if o.Cause == store.WorkerDied && lives {
		return true // While the store stood still, another worker took it for dead.
	}
	e.Outcome, e.OutcomeKnown, e.Cause = o, true, o.Cause
	if o.Cause != store.WorkerDied && o.InstanceID == e.Record.InstanceID && o.Ended.After(e.Written) {
		e.Written = o.Ended
	}
	return true
}

// worked is the entry of the work that an outcome is about, nil if there is none: the newest of the slot
// that fits best. A record that changes no term names another one than that of the work, if its
// worker has lost that meanwhile. Of a group, the entry names only the member that claimed the slot.
func (h *reader) worked(o store.Outcome) (best *Entry) {
	most := 0
	for i := range slices.Backward(h.entries) {
		e := &h.entries[i]
		if e.State == Poison || !e.Slot.Start.Equal(o.SlotStart) || !e.Slot.End.Equal(o.SlotEnd) {
			continue
		}
		own := e.Record.InstanceID == o.InstanceID
		fits := 0
		switch {
		case e.granted() && own && e.Attempt == o.Attempt:
			fits = 4
		case e.granted() && own:
			fits = 3
		case e.granted() && e.Record.Group != "":
			fits = 2
		case e.State == Done && !e.granted():
			fits = 1 // Its grant was not read, or it was missed and made up for.
		}
		if fits > most {
			best, most = e, fits
		}
	}
	return best
}

// tell adds an entry for a record that changes no term and whose outcome isn't of a slot that was read.
func (h *reader) tell(r store.Record) {
	e := ofRecord(r, State(r.Kind))
	if o, ok := r.Outcome(); ok {
		e.Slot = slots.Slot{Start: o.SlotStart, End: o.SlotEnd}
		e.Outcome, e.OutcomeKnown, e.Cause, e.Attempt = o, true, o.Cause, o.Attempt
	}
	h.entries = append(h.entries, e)
}

// fail marks the entries whose work has failed, and whose slot has come to nothing better since. A worker that says
// nothing of a job up to the end of its lease has died.
func (h *reader) fail() {
	better := map[int64]bool{} // by the end of the slot
	for i := range slices.Backward(h.entries) {
		e := &h.entries[i]
		slot := e.Slot.End.UnixMilli()
		if e.granted() && e.State == Expired && e.Attempt > 0 && !e.OutcomeKnown && !h.now.Before(gap.SaidBy(e.Slot, e.Window.End)) {
			e.Cause = store.WorkerDied
		}
		failed := e.OutcomeKnown && e.Outcome.Result == store.Failed || e.Cause == store.WorkerDied
		switch {
		case e.State == Skipped:
		case e.State == Done, e.OutcomeKnown && !failed:
			better[slot] = true
		case failed && !better[slot]:
			e.State = Failed
		}
	}
}

// Holds reports that the holder of an entry has its lease at a time: it is in force, and there is work to do
// under it. A worker whose job is done holds nothing any more.
func (e Entry) Holds(at time.Time) bool {
	done := e.State == Done && !at.Before(e.DoneAt) // DoneAt is zero if it isn't known.
	return !done && e.InForce(at)
}

// Holder is the entry whose lease is held at a time; false if there is none. All that shows who holds goes by this.
func Holder(entries []Entry, at time.Time) (Entry, bool) {
	for _, e := range slices.Backward(entries) {
		if e.Holds(at) {
			return e, true
		}
	}
	return Entry{}, false
}

// InForce reports that the lease of an entry is in force at a time, whatever has come of its work.
func (e Entry) InForce(at time.Time) bool {
	ended := func(t time.Time) bool { return !t.IsZero() && !at.Before(t) }
	return e.granted() && e.Window.Contains(at) && !ended(e.ReleasedAt) && !ended(e.OverriddenAt)
}

// outcomeNote says what came of the work: "done in 4m2s", "exit code 3 after 12s".
func (e Entry) outcomeNote() string {
	if e.Cause == store.WorkerDied {
		if e.Outcome.GivenUp {
			return "its worker died, given up"
		}
		return "its worker died"
	}
	if e.Silent() {
		return "its worker fell silent"
	}
	if !e.OutcomeKnown {
		return ""
	}
	o := e.Outcome
	took := ""
	if d, ok := o.Took(); ok {
		took = duration(d)
	}
	if o.Result != store.Failed {
		if took != "" {
			return "done in " + took
		}
		return ""
	}
	text := "failed"
	switch {
	case o.Cause != "":
		text = string(o.Cause)
	case o.Exited:
		text = fmt.Sprintf("exit code %d", o.ExitCode)
	}
	if took != "" {
		text += " after " + took
	}
	if o.GivenUp {
		text += ", given up"
	}
	if line := firstLine(o.Error); line != "" && !o.Exited && o.Cause == "" {
		text += ": " + line
	}
	return text
}

// firstLine is the first line of an error's text that says anything, up to a bound.
func firstLine(text string) string {
	const most = 120
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimRightFunc(line, unicode.IsSpace)
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return line
}

// duration is how long work took, cut to milliseconds below a second, tenths below ten, and
// seconds above.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		d = d.Truncate(time.Millisecond)
	case d < 10*time.Second:
		d = d.Truncate(100 * time.Millisecond)
	default:
		d = d.Truncate(time.Second)
	}
	return d.String()
}
