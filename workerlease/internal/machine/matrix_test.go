package machine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// situation is a state, and the moment and ledger it is found in.
type situation struct {
	name string
	w    *world
}

// situations are one for each stage and each operation, with and without a
// lease.
func situations(t testing.TB) []situation {
	t.Helper()
	plain := func() *world {
		rules := machine.Standard
		rules.Keep, rules.TrimEvery = 1, 2
		w := newWorld(machine.Machine{Config: machine.Config{
			Rules: rules, WorkerType: "mail", InstanceID: "w1",
			Schedule: slots.Must(slots.Every(5 * time.Minute)), Margin: 250 * time.Millisecond, Retention: 2 * time.Hour,
			MinBackoff: 100 * time.Millisecond, MaxBackoff: 5 * time.Second,
		}})
		w.local = 24*time.Hour + 2*time.Minute
		must(t, w.event(machine.Wake{}))
		return w
	}
	var all []situation
	// reach adds what a world is like after some steps: ok answers, next waits.
	reach := func(name string, prepare func(*world), steps ...string) {
		w := plain()
		if prepare != nil {
			prepare(w)
		}
		for _, step := range steps {
			switch step {
			case "ok":
				must(t, w.event(w.reply(nil, false, 0)))
			case "timeout":
				must(t, w.event(w.reply(errTimeout, false, 0)))
			case "next":
				_, err := w.wait()
				must(t, err)
			case "late":
				w.local += 5 * time.Minute
				must(t, w.event(machine.Wake{}))
			case "returned":
				must(t, w.event(machine.Returned{}))
			case "stop":
				must(t, w.event(machine.Stop{}))
			case "giveup":
				must(t, w.event(machine.GiveUp{}))
			}
		}
		all = append(all, situation{name, w})
	}
	old := func(w *world) { // a head that can justify trimming
		r := store.Record{
			WorkerType: "mail", Seq: 1, Kind: store.KindGrant, InstanceID: "w2", Claim: "old", Token: eve.UnixMilli(),
			WindowStart: eve, WindowEnd: eve.Add(5 * time.Minute), ReadAt: eve, Schedule: w.m.Schedule.String(),
		}
		w.ledger[1] = r
	}
	claim := []string{"ok", "next", "ok", "ok"} // up to the append
	hold := append(claim[:4:4], "ok", "next")
	reach("start", nil)
	reach("aiming", nil, "ok")
	reach("rung, asking the time", nil, "ok", "next")
	reach("reading", nil, "ok", "next", "ok")
	reach("sending", nil, claim...)
	reach("checking", nil, append(claim[:4:4], "timeout")...)
	reach("absent, backing off", nil, append(claim[:4:4], "timeout", "ok")...)
	reach("won", nil, append(claim[:4:4], "ok")...)
	reach("won, probing", old, append(claim[:4:4], "ok")...)
	reach("won, trimming", old, append(claim[:4:4], "ok", "ok")...)
	reach("holding", nil, hold...)
	reach("holding, sending", nil, append(hold[:6:6], "next", "ok", "ok")...)
	reach("overrunning", nil, append(hold[:6:6], "late", "ok", "ok")...)
	reach("stopping, code runs", nil, append(hold[:6:6], "stop")...)
	reach("releasing", nil, append(hold[:6:6], "stop", "returned", "ok")...)
	reach("given up, code runs", nil, append(hold[:6:6], "stop", "giveup")...)
	reach("halted", nil, "ok", "stop")
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// happenings are one event of each kind, good and bad.
func happenings(w *world) []struct {
	name  string
	event machine.Event
} {
	taken := store.Record{
		WorkerType: "mail", Seq: w.s.Sent.Seq, Kind: store.KindGrant, InstanceID: "w2", Claim: "theirs",
		WindowStart: w.s.Slot.Start, WindowEnd: w.s.Slot.End, Token: w.time().UnixMilli() + 1000, Schedule: w.m.Schedule.String(),
	}
	if taken.Seq == 0 {
		taken.Seq = w.top() + 1
	}
	down := errors.New("down")
	return []struct {
		name  string
		event machine.Event
	}{
		{"Wake", machine.Wake{}},
		{"Sampled", machine.Sampled{}},
		{"Sampled, error", machine.Sampled{Err: down}},
		{"HeadRead, none", machine.HeadRead{}},
		{"HeadRead, taken", machine.HeadRead{Records: []store.Record{taken}}},
		{"HeadRead, error", machine.HeadRead{Err: down}},
		{"RecordRead, mine", machine.RecordRead{Seq: w.s.Sent.Seq, Record: w.s.Sent}},
		{"RecordRead, theirs", machine.RecordRead{Seq: taken.Seq, Record: taken}},
		{"RecordRead, absent", machine.RecordRead{Err: store.ErrNotFound}},
		{"RecordRead, error", machine.RecordRead{Err: down}},
		{"Appended", machine.Appended{Seq: w.s.Sent.Seq}},
		{"Appended, conflict", machine.Appended{Seq: w.s.Sent.Seq, Err: store.ErrConflict}},
		{"Appended, unknown", machine.Appended{Seq: w.s.Sent.Seq, Err: down}},
		{"Appended, invalid", machine.Appended{Seq: w.s.Sent.Seq, Err: store.ErrInvalid}},
		{"Trimmed, some", machine.Trimmed{Count: 3}},
		{"Trimmed, a batch", machine.Trimmed{Count: store.TrimBatch}},
		{"Trimmed, error", machine.Trimmed{Err: down}},
		{"Began", machine.Began{}},
		{"Skipped", machine.Skipped{}},
		{"Panicked", machine.Panicked{}},
		{"Returned", machine.Returned{}},
		{"Stop", machine.Stop{}},
		{"GiveUp", machine.GiveUp{}},
	}
}

// Every event in every state does something sensible, or nothing at all:
// testdata/matrix.md lists what.
func TestEveryEventInEveryState(t *testing.T) {
	const file = "testdata/matrix.md"
	var out bytes.Buffer
	fmt.Fprintln(&out, "# Every event in every state")
	fmt.Fprintln(&out, "\nWhat the machine does, and the stage and operation that it is in then. What is not listed does nothing.")
	for _, s := range situations(t) {
		fmt.Fprintf(&out, "\n## %s\n\n", s.name)
		for _, h := range happenings(s.w) {
			m := s.w.m
			at := s.w.moment()
			after, actions := m.Step(s.w.s, at, h.event)
			if after == s.w.s && len(actions) == 0 {
				continue
			}
			fmt.Fprintf(&out, "- %s: %s\n", h.name, sketch(after, actions))
			for _, wait := range m.Waits(after) {
				if wait.Time.IsZero() && wait.Local <= at.Local {
					t.Errorf("%s, %s: waits for %v, which is past", s.name, h.name, wait)
				}
			}
		}
	}
	want, err := os.ReadFile(file)
	if *update {
		err = os.WriteFile(file, out.Bytes(), 0o644)
		want = out.Bytes()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != string(want) {
		t.Errorf("%s differs (-want +got); if that is right, run with -update:\n%s", file, cmp.Diff(string(want), got))
	}
}

// sketch is what happened, in a few words.
func sketch(s machine.State, actions []machine.Action) string {
	var words []string
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Tell:
			word := a.Note.What.String()
			if a.Note.Why != 0 {
				word += " (" + a.Note.Why.String() + ")"
			}
			words = append(words, "told "+word)
		case machine.Append:
			words = append(words, fmt.Sprintf("append %s %d", a.Record.Kind, a.Record.Seq))
		case machine.Expire:
			words = append(words, fmt.Sprintf("EXPIRE (%v)", a.Why))
		case machine.Allocate:
			words = append(words, "ALLOCATE")
		case machine.Halt:
			words = append(words, "HALT")
		default:
			words = append(words, s.Pending.String())
		}
	}
	state := s.Stage.String() + " " + s.Slot.Start.Format("15:04")
	if s.Stage == machine.Halted || s.Slot.IsZero() {
		state = s.Stage.String()
	}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{!s.Held.IsZero(), "holding"},
		{!s.Next.IsZero(), "won"},
		{s.Running && s.Held.IsZero(), "code runs"},
		{s.Retry > 0, "backing off"},
		{s.Stopping, "stopping"},
	} {
		if f.on {
			state += ", " + f.name
		}
	}
	return strings.Join(append(words, "now "+state), "; ")
}
