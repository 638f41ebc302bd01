package machine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
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

// situations are those of testdata/situations.list.
func situations(t testing.TB) (all []situation) {
	t.Helper()
	text, err := os.ReadFile("testdata/situations.list")
	must(t, err)
	scripts := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		name, commands, is := strings.Cut(strings.TrimSpace(line), ": ")
		if !is || name[0] == '#' {
			continue
		}
		steps := strings.Split(commands, "; ")
		if before, known := scripts[steps[0]]; known {
			steps = append(slices.Clip(before), steps[1:]...)
		}
		scripts[name] = steps
		s := &script{names: map[string]string{}, world: newWorld(config(strings.Fields(steps[0])[1:]))}
		for _, step := range steps[1:] {
			words := strings.Fields(step)
			if _, err := s.do(words[0], words[1:]); err != nil {
				t.Fatalf("%s: %s: %v", name, step, err)
			}
		}
		all = append(all, situation{name, s.world})
	}
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
	order := w.s.Bid.Below // of whoever holds the lease, and changes nothing of that
	order.Seq, order.Kind, order.WindowStart = taken.Seq, store.KindOrder, order.WindowEnd
	override := taken
	override.Kind, override.WindowStart, override.WindowEnd, override.Token = store.KindOverride, w.time(), w.time(), order.Token+1
	down := errors.New("down")
	return []happening{
		{"Wake", machine.Wake{}},
		{"Hinted", machine.Hinted{}},
		{"Sampled", machine.Sampled{}},
		{"Sampled, error", machine.Sampled{Err: down}},
		{"HeadRead", machine.HeadRead{Records: w.tail(16, 0)}},
		{"HeadRead, none", machine.HeadRead{}},
		{"HeadRead, taken", machine.HeadRead{Records: []store.Record{taken}}},
		{"HeadRead, error", machine.HeadRead{Err: down}},
		{"RecordRead, mine", machine.RecordRead{Seq: w.s.Bid.Record.Seq, Record: w.s.Bid.Record}},
		{"RecordRead, theirs", machine.RecordRead{Seq: taken.Seq, Record: taken}},
		{"RecordRead, poison", machine.RecordRead{Seq: taken.Seq, Record: store.Record{WorkerType: "mail", Seq: taken.Seq, Defect: "broken"}}},
		{"RecordRead, an order", machine.RecordRead{Seq: order.Seq, Record: order}},
		{"RecordRead, an override", machine.RecordRead{Seq: override.Seq, Record: override}},
		{"RecordRead, absent", machine.RecordRead{Err: store.ErrNotFound}},
		{"RecordRead, error", machine.RecordRead{Err: down}},
		{"Appended", machine.Appended{Seq: w.s.Bid.Record.Seq}},
		{"Appended, conflict", machine.Appended{Seq: w.s.Bid.Record.Seq, Err: store.ErrConflict}},
		{"Appended, unknown", machine.Appended{Seq: w.s.Bid.Record.Seq, Err: down}},
		{"Appended, invalid", machine.Appended{Seq: w.s.Bid.Record.Seq, Err: store.ErrInvalid}},
		{"Trimmed, some", machine.Trimmed{Count: 3}},
		{"Trimmed, a batch", machine.Trimmed{Count: store.TrimBatch}},
		{"Trimmed, error", machine.Trimmed{Err: down}},
		{"Appended, throttled", machine.Appended{Seq: w.s.Bid.Record.Seq, Err: &store.ThrottledError{RetryAfter: 7 * time.Second, Err: down}}},
		{"Sighted", machine.Sighted{Since: w.time().Add(-time.Minute)}},
		{"Sighted, error", machine.Sighted{Err: down}},
		{"Judged, fit", machine.Judged{}},
		{"Judged, unfit", machine.Judged{Err: down}},
		{"Appended, not stored", machine.Appended{Seq: w.s.Bid.Record.Seq, Err: store.ErrNotStored}},
		{"Appended, denied", machine.Appended{Seq: w.s.Bid.Record.Seq, Err: store.ErrDenied}},
		{"Appended, the store went back", machine.Appended{Seq: w.s.Bid.Record.Seq, Err: store.WentBack(w.s.Bid.Below)}},
		{"HeadRead, poison", machine.HeadRead{Records: append([]store.Record{{WorkerType: "mail", Seq: w.top() + 1, Defect: "broken"}}, w.tail(8, 0)...)}},
		{"Ranked", machine.Ranked{Rank: machine.Rank{Known: true, Priority: 9}}},
		{"Remembered, died", machine.Remembered{Held: true, Died: true, Since: w.time().Add(-time.Hour), Seen: w.time()}},
		{"Remembered, died in trouble", machine.Remembered{Trouble: machine.Trouble{Slots: 2}, Died: true, Since: w.time().Add(-time.Hour), Seen: w.time()}},
		{"Remembered, in trouble", machine.Remembered{Trouble: machine.Trouble{Slots: 4, Until: w.time().Add(10 * time.Hour)}, Since: w.time().Add(-time.Hour), Seen: w.time()}},
		{"Served", machine.Served{}},
		{"Drain", machine.Drain{}},
		{"Began", machine.Began{}},
		{"Skipped", machine.Skipped{}},
		{"Skipped, unwanted", machine.Skipped{Unwanted: true}},
		{"Panicked", machine.Panicked{}},
		{"Faltered", machine.Faltered{Claim: w.s.Hold.Held.Claim}},
		{"Worked, failed", machine.Worked{Claim: w.s.Hold.Left.Claim, Failed: true}},
		{"Worked, stopped", machine.Worked{Claim: w.s.Hold.Left.Claim, Failed: true, Work: machine.Work{Cause: store.SlotEnded, Output: "so far"}}},
		{"Returned", machine.Returned{}},
		{"Finished, done", machine.Finished{Done: true}},
		{"Finished, failed", machine.Finished{}},
		{"Finished, gives back", machine.Finished{GivesBack: true}},
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
	fmt.Fprintln(&out, "\nWhat the machine does, as in a trace, and what is other in its state then. What is not listed does nothing, or is remembered. The last line is how it goes on if nothing happens.")
	row := func(names, answer string) { // of events in a row with one answer
		if names != "" {
			fmt.Fprintf(&out, "- %s: %s\n", names, answer)
		}
	}
	for _, s := range situations(t) {
		trace := &script{world: s.w, names: map[string]string{}}
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", s.name, trace.state())
		if s.w.op != nil {
			fmt.Fprintf(&out, "%s\n", trace.action(s.w.op))
		}
		fmt.Fprintln(&out)
		names, answer := "", ""
		for _, h := range happenings(s.w) {
			m := s.w.m
			if _, judged := h.event.(machine.Judged); judged && !m.Checks {
				continue
			}
			at := s.w.moment()
			after, actions := m.Step(s.w.s, at, h.event)
			after.Hint.Heard = s.w.s.Hint.Heard // It is remembered.
			if after == s.w.s && len(actions) == 0 {
				continue
			}
			if next := s.w.line(after, actions); next == answer || next == "" {
				if next != "" { // else it is remembered, at most
					names += " / " + h.name
				}
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
		row("goes on", s.goesOn(t))
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

// goesOn is what the worker does if the store answers honestly, code returns when its lease has ended, and nothing else happens.
func (s situation) goesOn(t *testing.T) string {
	trace := &script{world: s.w, names: map[string]string{}}
	var words []string
	for range 12 {
		s.w.log = nil
		before := s.w.local
		must(t, s.w.goOn())
		if len(s.w.log) > 0 && s.w.local > before {
			words = append(words, at(s.w.time()))
		}
		for _, a := range s.w.log {
			words = append(words, trace.action(a))
		}
	}
	return strings.Join(words, "; ")
}

// line is an answer of the machine, and the state after it, if that shows a change.
func (w *world) line(after machine.State, actions []machine.Action) string {
	c := *w
	c.watcher = &watcher{m: w.m, s: w.s}
	s := &script{world: &c, names: map[string]string{}}
	before := s.state()
	var words []string
	for _, a := range actions {
		words = append(words, s.action(a))
	}
	s.s = after
	if change := changed(before, s.state()); change != "" {
		words = append(words, change)
	}
	return strings.Join(words, "; ")
}

// changed is what a state has that the one before had not, what it has no more, and what is waited for if that is something else.
func changed(before, after string) string {
	const waits = "; waits for "
	was, waited, _ := strings.Cut(before, waits)
	is, waiting, _ := strings.Cut(after, waits)
	had, has := strings.Split(was, ", "), strings.Split(is, ", ")
	words := slices.DeleteFunc(slices.Clone(has), func(word string) bool { return slices.Contains(had, word) })
	for _, word := range had[1:] { // The first is the stage.
		name, _, _ := strings.Cut(word, " ")
		other := slices.Contains([]string{"held", "next", "void"}, name) && slices.ContainsFunc(has, func(word string) bool { return strings.HasPrefix(word, name+" ") })
		if !other && !slices.Contains(has, word) {
			words = append(words, "no more "+word)
		}
	}
	change := strings.Join(words, ", ")
	switch waiting {
	case waited:
		return change
	case "":
		waiting = "nothing"
	}
	return strings.TrimPrefix(change+waits+waiting, "; ")
}
