package machine_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// show is what the machine did, and the state if it changed.
func (s *script) show(command, before string) string {
	var out strings.Builder
	if command == "next" {
		fmt.Fprintf(&out, "  %s\n", at(s.time()))
	}
	for _, a := range s.log {
		fmt.Fprintf(&out, "  %s\n", s.action(a))
	}
	if state := s.state(); state != before {
		fmt.Fprintf(&out, "    %s\n", state)
	}
	return out.String()
}

// at is a time of the first day, or of another with its date.
func at(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	if t.UTC().Truncate(24 * time.Hour).Equal(eve) {
		return t.UTC().Format("15:04:05.999")
	}
	return t.UTC().Format("2006-01-02T15:04:05.999")
}

func window(start, end time.Time) string {
	if start.Equal(end) {
		return "at " + at(start)
	}
	return at(start) + "…" + at(end)
}

// name is a short name for one's own claims.
func (s *script) name(claim string) string {
	if len(claim) < 32 {
		return claim
	}
	if s.names[claim] == "" {
		s.names[claim] = fmt.Sprintf("c%d", len(s.names)+1)
	}
	return s.names[claim]
}

func (s *script) record(r store.Record) string {
	text := fmt.Sprintf("%d %s %s token %s by %s", r.Seq, r.Kind, window(r.WindowStart, r.WindowEnd),
		at(store.FromMillis(r.Token)), s.name(r.Claim))
	if r.Kind == store.KindGrant && !r.SlotStart.Equal(r.WindowStart) {
		text += " in " + window(r.SlotStart, r.SlotEnd)
	}
	if s.m.MaxAttempts > 0 {
		text += fmt.Sprintf(" attempt %d", r.Attempt)
	}
	if r.Kind == store.KindReset {
		text += " " + r.Metadata
	}
	if r.Kind == store.KindDone {
		text += " until " + at(r.DoneUntil)
	}
	if l, tells := r.Lost(); tells {
		text += fmt.Sprintf(": record %d is lost, of %s, token %s, %s", l.Seq, l.InstanceID, at(store.FromMillis(l.Token)), window(l.Start, l.End))
	}
	orders, _ := store.ParseOrders(r.Orders)
	for _, o := range orders {
		text += fmt.Sprintf(", %s until %s", o.Kind, at(o.Until))
		if o.Attempts > 0 {
			text += fmt.Sprintf(" after %d attempts, %d spared, again at %s", o.Attempts, o.Spared, at(o.Again))
		}
	}
	if o, tells := r.Outcome(); tells {
		text += fmt.Sprintf(": %s %s after %v: %q", window(o.SlotStart, o.SlotEnd), o.Result, o.Ended.Sub(o.Begun), o.Error)
		if o.GivenUp {
			text += ", given up"
		}
	}
	return text
}

func (s *script) action(a machine.Action) string {
	switch a := a.(type) {
	case machine.Sample:
		return "→ ask for the time"
	case machine.ReadHead:
		return fmt.Sprintf("→ read the head (%d)", a.Limit)
	case machine.ReadRecord:
		return fmt.Sprintf("→ read %d", a.Seq)
	case machine.Append:
		return "→ append " + s.record(a.Record)
	case machine.Trim:
		return fmt.Sprintf("→ trim below %d", a.Before)
	case machine.Sight:
		return fmt.Sprintf("→ note poison at seq %d, seen at %s", a.Poison.Seq, at(a.Since))
	case machine.Allocate:
		return fmt.Sprintf("ALLOCATED %s token %s", window(a.Term.Start, a.Term.End), at(store.FromMillis(a.Term.Token)))
	case machine.Expire:
		return fmt.Sprintf("EXPIRED: %v", a.Why)
	case machine.Halt:
		return "HALTED"
	case machine.Observe:
		return fmt.Sprintf("observed %d", a.Record.Seq)
	case machine.Tell:
		return "told: " + s.note(a.Note)
	}
	return fmt.Sprintf("%T", a)
}

func (s *script) note(n machine.Note) string {
	text := n.What.String()
	if !n.Slot.IsZero() {
		text += " " + window(n.Slot.Start, n.Slot.End)
	}
	if !n.Until.IsZero() && !n.Until.Equal(n.Slot.End) {
		text += ", up to " + at(n.Until)
	}
	switch n.What {
	case machine.Lost, machine.Mismatch, machine.OtherWork:
		text += fmt.Sprintf(" to %s, seq %d", n.Record.InstanceID, n.Record.Seq)
	case machine.Failed:
		text += " " + n.Op.String()
	case machine.Exhausted, machine.Postponed, machine.SteppedBack, machine.WorkerDied:
		text += fmt.Sprintf(" (%d)", n.Count)
	case machine.Cleared:
		text += fmt.Sprintf(" %d records", n.Count)
	case machine.Poison, machine.Vanished:
		text += fmt.Sprintf(" at seq %d", n.Record.Seq)
	default:
	}
	if n.Why != 0 {
		text += ": " + n.Why.String()
	}
	if n.Err != nil {
		text += ": " + strings.ReplaceAll(n.Err.Error(), "\n", "; ")
	}
	return text
}

// state is what matters of the state, in one line.
func (s *script) state() string {
	v := s.s
	text := v.Bid.Stage.String()
	if !v.Bid.Slot.IsZero() && v.Bid.Stage != machine.Halted {
		text += " " + at(v.Bid.Slot.Start)
	}
	for _, t := range []struct {
		name string
		t    machine.Term
	}{{"held", v.Hold.Held}, {"next", v.Hold.Next}} {
		if !t.t.IsZero() {
			text += fmt.Sprintf(", %s %s", t.name, window(t.t.Start, t.t.End))
		}
	}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{v.Hold.Running && v.Hold.Held.IsZero(), "code still runs"},
		{v.Bid.OutcomeUnknown, "in doubt"},
		{v.Bid.VoidClaim != "", "void " + s.name(v.Bid.VoidClaim)},
		{v.Clock.Settled < v.Clock.Epoch, "unsettled"},
		{v.Draining, "draining"},
		{v.Stopping, "stopping"},
		{v.Stopping && v.Unreleased(s.now(0).Latest), "unreleased"},
		{v.Bid.Role == machine.Joiner, "to join"},
		{v.Bid.Role == machine.Extender, "extending"},
		{v.Bid.Role == machine.Standby, "standing by"},
		{!v.Hold.Resume.IsZero(), "resting"},
		{!v.Closing.Done.IsZero(), "to record what is done"},
		{v.Closing.Release, "to release"},
		{v.Report.Metadata != "", "to report work"},
		{v.Death.Metadata != "", "to report a death"},
		{v.Missing.Metadata != "", "to report a loss"},
		{v.Triggers.Order.Kind != "", "asked to run"},
		{v.Eligibility.Unfit, "unfit"},
		{v.View.Watch.Seq != 0, "watching poison"},
	} {
		if f.on {
			text += ", " + f.name
		}
	}
	var waits []string
	for _, w := range s.m.Waits(&v) {
		if w.Time.IsZero() {
			waits = append(waits, fmt.Sprintf("%v", w.Local-s.local))
		} else {
			waits = append(waits, fmt.Sprintf("%v %s", w.Edge, at(w.Time)))
		}
	}
	if v.Pending != machine.Nothing && v.Pending != machine.Probing && v.Pending != machine.Trimming {
		waits = append(waits, fmt.Sprintf("%v, at most %v", v.Pending, s.m.Timeout(&v)))
	}
	if len(waits) > 0 {
		text += "; waits for " + strings.Join(waits, ", ")
	}
	return text
}
