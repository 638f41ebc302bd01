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
	var all []situation
	// reach adds what a world is like after some steps: ok answers, next waits.
	reach := func(name string, prepare func(*world), steps ...string) {
		c := plain()
		c.Rules.Keep, c.Rules.TrimEvery, c.Retention = 1, 2, 2*time.Hour
		w := newWorld(c)
		w.local = 24*time.Hour + 2*time.Minute
		must(t, w.event(machine.Wake{}))
		if prepare != nil {
			prepare(w)
		}
		s := &script{world: w}
		for _, step := range steps {
			words := strings.Fields(step)
			if err := s.run(words[0], words[1:]); err != nil {
				t.Errorf("%s: %s: %v", name, step, err)
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
	parts := func(w *world) { w.m.Failover = time.Minute }
	behind := func(w *world) { // a part of the slot, which another holds
		parts(w)
		w.m.Joins = true
		w.ledger[1] = store.Record{
			WorkerType: "mail", Seq: 1, Kind: store.KindGrant, InstanceID: "w2", Claim: "theirs", Token: w.time().UnixMilli(),
			SlotStart: w.time().Truncate(5 * time.Minute), SlotEnd: w.time().Truncate(5 * time.Minute).Add(5 * time.Minute),
			WindowStart: w.time(), WindowEnd: w.time().Add(45 * time.Second), Schedule: w.m.Schedule.String(),
		}
	}
	once := func(w *world) { w.m.Once, w.m.MaxAttempts, w.s.View.Arrived = true, 3, true }
	endless := func(w *world) { w.m.Continuous = true }
	reach("start", nil)
	reach("aiming", nil, "ok")
	reach("turn, asking the time", nil, "ok", "next")
	reach("reading", nil, "ok", "next", "ok")
	reach("sending", nil, claim...)
	reach("checking", nil, append(claim[:4:4], "timeout")...)
	reach("absent, backing off", nil, append(claim[:4:4], "timeout", "ok")...)
	reach("won", nil, append(claim[:4:4], "ok")...)
	reach("won, probing", old, append(claim[:4:4], "ok")...)
	reach("won, trimming", old, append(claim[:4:4], "ok", "ok")...)
	reach("holding", nil, hold...)
	reach("holding, sending", nil, append(hold[:6:6], "next", "ok", "ok")...)
	reach("overrunning", nil, append(hold[:6:6], "passes 5m", "wake")...)
	extend := append(hold[:6:6], "next") // up to the append
	reach("extending", parts, hold...)
	reach("extending, sending", parts, extend...)
	reach("extending, checking", parts, append(extend[:7:7], "timeout")...)
	reach("extended, probing", parts, append(extend[:7:7], "ok")...)
	reach("extending, too late", parts, append(extend[:7:7], "timeout", "passes 5m", "wake")...)
	reach("going on, sending", endless, append(hold[:6:6], "next", "ok", "ok")...)
	reach("gone on, probing", endless, append(hold[:6:6], "next", "ok", "ok", "ok")...)
	reach("resting", endless, append(hold[:6:6], "rested")...)
	reach("resting, next slot begun", endless, append(hold[:6:6], "rested", "next", "ok", "ok", "ok", "passes 11s")...)
	reach("standing by", behind, "ok", "next", "ok")
	reach("standing by, reading", behind, "ok", "next", "ok", "next", "ok")
	reach("done, code runs", once, append(hold[:6:6], "done")...)
	reach("telling done", once, append(hold[:6:6], "done", "ok")...)
	reach("telling done, checking", once, append(hold[:6:6], "done", "ok", "timeout")...)
	reach("told done", once, append(hold[:6:6], "done", "ok", "ok")...)
	reach("failed, code runs", once, append(hold[:6:6], "failed")...)
	reach("failed, releasing", once, append(hold[:6:6], "failed", "returned", "ok")...)
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

// happening is an event with a name.
type happening struct {
	name  string
	event machine.Event
}

// happenings are one event of each kind, good and bad.
func happenings(w *world) []happening {
	taken := store.Record{
		WorkerType: "mail", Seq: w.s.Bid.Record.Seq, Kind: store.KindGrant, InstanceID: "w2", Claim: "theirs",
		WindowStart: w.s.Bid.Slot.Start, WindowEnd: w.s.Bid.Slot.End, Token: w.time().UnixMilli() + 1000, Schedule: w.m.Schedule.String(),
	}
	if below := w.s.Bid.Below; below.WindowEnd.After(taken.WindowStart) {
		taken.WindowStart = below.WindowEnd
	}
	if taken.Seq == 0 {
		taken.Seq = w.top() + 1
	}
	down := errors.New("down")
	return []happening{
		{"Wake", machine.Wake{}},
		{"Hinted", machine.Hinted{}},
		{"Sampled", machine.Sampled{}},
		{"Sampled, error", machine.Sampled{Err: down}},
		{"HeadRead, none", machine.HeadRead{}},
		{"HeadRead, taken", machine.HeadRead{Records: []store.Record{taken}}},
		{"HeadRead, error", machine.HeadRead{Err: down}},
		{"RecordRead, mine", machine.RecordRead{Seq: w.s.Bid.Record.Seq, Record: w.s.Bid.Record}},
		{"RecordRead, theirs", machine.RecordRead{Seq: taken.Seq, Record: taken}},
		{"RecordRead, absent", machine.RecordRead{Err: store.ErrNotFound}},
		{"RecordRead, error", machine.RecordRead{Err: down}},
		{"Appended", machine.Appended{Seq: w.s.Bid.Record.Seq}},
		{"Appended, conflict", machine.Appended{Seq: w.s.Bid.Record.Seq, Err: store.ErrConflict}},
		{"Appended, unknown", machine.Appended{Seq: w.s.Bid.Record.Seq, Err: down}},
		{"Appended, invalid", machine.Appended{Seq: w.s.Bid.Record.Seq, Err: store.ErrInvalid}},
		{"Trimmed, some", machine.Trimmed{Count: 3}},
		{"Trimmed, a batch", machine.Trimmed{Count: store.TrimBatch}},
		{"Trimmed, error", machine.Trimmed{Err: down}},
		{"Began", machine.Began{}},
		{"Skipped", machine.Skipped{}},
		{"Panicked", machine.Panicked{}},
		{"Faltered", machine.Faltered{Claim: w.s.Hold.Held.Claim}},
		{"Worked, failed", machine.Worked{Claim: w.s.Hold.Left.Claim, Failed: true}},
		{"Returned", machine.Returned{}},
		{"Finished, done", machine.Finished{Done: true}},
		{"Finished, failed", machine.Finished{}},
		{"Rested", machine.Rested{}},
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
	row := func(names, answer string) { // of events in a row with one answer
		if names != "" {
			fmt.Fprintf(&out, "- %s: %s\n", names, answer)
		}
	}
	for _, s := range situations(t) {
		fmt.Fprintf(&out, "\n## %s\n\n", s.name)
		names, answer := "", ""
		for _, h := range happenings(s.w) {
			m := s.w.m
			at := s.w.moment()
			after, actions := m.Step(s.w.s, at, h.event)
			after.Hint.Heard = s.w.s.Hint.Heard // It is remembered.
			if after == s.w.s && len(actions) == 0 {
				continue
			}
			if next := sketch(after, actions); next == answer {
				names += " / " + h.name
			} else {
				row(names, answer)
				names, answer = h.name, next
			}
			for _, wait := range m.Waits(&after) {
				if wait.Time.IsZero() && wait.Local <= at.Local {
					t.Errorf("%s, %s: waits for %v, which is past", s.name, h.name, wait)
				}
			}
		}
		row(names, answer)
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
		case machine.Observe:
			words = append(words, fmt.Sprint("observed ", a.Record.Seq))
		case machine.Append:
			words = append(words, fmt.Sprintf("append %s %d", a.Record.Kind, a.Record.Seq))
		case machine.Expire:
			words = append(words, fmt.Sprintf("EXPIRE (%v)", a.Why))
		case machine.Allocate:
			words = append(words, "ALLOCATE")
		case machine.Extend:
			words = append(words, "EXTEND")
		case machine.CallAgain:
			words = append(words, "CALL AGAIN")
		case machine.Halt:
			words = append(words, "HALT")
		default:
			words = append(words, s.Pending.String())
		}
	}
	state := s.Bid.Stage.String() + " " + s.Bid.Slot.Start.Format("15:04")
	if s.Bid.Stage == machine.Halted || s.Bid.Slot.IsZero() {
		state = s.Bid.Stage.String()
	}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{!s.Hold.Held.IsZero(), "holding"},
		{!s.Hold.Next.IsZero(), "won"},
		{s.Hold.Running && s.Hold.Held.IsZero(), "code runs"},
		{s.Bid.Role == machine.Extender, "extending"},
		{s.Bid.Role == machine.Standby, "standing by"},
		{!s.Hold.Resume.IsZero(), "resting"},
		{!s.Closing.Done.IsZero(), "to tell what is done"},
		{s.Closing.Release, "to release"},
		{s.Retries.Until > 0, "backing off"},
		{s.Stopping, "stopping"},
	} {
		if f.on {
			state += ", " + f.name
		}
	}
	return strings.Join(append(words, "now "+state), "; ")
}
