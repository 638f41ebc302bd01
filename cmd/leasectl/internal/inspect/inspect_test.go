package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease/history"
)

// planted is a ledger in memory at 12:42, with everything that can be shown.
func planted() *memory.Ledger {
	first := recordtest.Grant(1, 0, "worker-a")
	second := recordtest.Grant(2, 1, "worker-b")
	second.Group, second.Priority = "north", 1
	unknown := second
	unknown.Seq, unknown.Kind, unknown.Metadata = 4, "audit", "42 rows"
	unknown.WindowStart = second.WindowStart.Add(90 * time.Second)
	unknown.WindowEnd = unknown.WindowStart
	hostile := recordtest.Grant(5, 2, "evil\x1b[2J\x1b]0;owned\a")
	hostile.Metadata = "x"
	late := recordtest.Grant(8, 8, "worker-a")
	late.FixedAt = late.SlotStart.Add(72 * time.Second)
	late.WindowStart = late.FixedAt
	next := recordtest.Grant(9, 9, "worker-c")
	next.Group = "south"
	return recorded(42,
		first, second, recordtest.Release(second, 3, second.WindowStart.Add(90*time.Second)), unknown, hostile,
		store.Record{WorkerType: "export", Seq: 6, Defect: "field token: missing"},
		recordtest.Grant(7, 3, "worker-b"), late, next,
	)
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shown runs inspect slots on a ledger.
func shown(t *testing.T, l store.Ledger, o Options) (string, error) {
	t.Helper()
	var stdout bytes.Buffer
	err := showLedger(t.Context(), storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}, l, o, Screen{Writer: &stdout})
	return stdout.String(), err
}

// decoded is what inspect slots shows of a ledger as JSON.
func decoded(t *testing.T, l store.Ledger, last int) (s Snapshot) {
	t.Helper()
	got, err := shown(t, l, Options{Last: last, JSON: true, Timeout: time.Minute})
	if err := errors.Join(err, json.Unmarshal([]byte(got), &s)); err != nil {
		t.Fatalf("inspect slots = %s, %v", got, err)
	}
	return s
}

// The first rows as JSON show the names of the fields. All of them are checked against
// what was read, from which the table is made as well.
func TestInspectSlotsShowsWhatIsInALedger(t *testing.T) {
	for name, test := range map[string]struct {
		ledger            func() *memory.Ledger
		inTable, asGolden int // rows
	}{
		"slots":    {planted, 20, 3},
		"jobs":     {jobs, 20, 4},
		"extended": {extending, 4, 1},
		"outcomes": {outcomes, 20, 3},
	} {
		for output, last := range map[string]int{"table": test.inTable, "json": test.asGolden} {
			got, err := shown(t, test.ledger(), Options{Last: last, JSON: output == "json", Timeout: time.Minute})
			if err != nil {
				t.Fatalf("inspect slots --output %s = %v", output, err)
			}
			golden.Compare(t, name+"."+output, got)
		}
		var s snapshot
		err := s.take(t.Context(), test.ledger(), Options{WorkerType: "export", Last: test.inTable}, 0)
		var encoded bytes.Buffer
		must(t, errors.Join(err, writeJSON(&encoded, s, true)))
		wantInJSON(t, encoded.Bytes(), s.rows)
		if all := encoded.String() + strings.Join(s.tableLines(false), ""); strings.ContainsAny(all, "\x1b\a") {
			t.Errorf("control characters of the ledger are let through: %q", all)
		}
	}
}

func TestAnOrdinaryTableFitsATerminal(t *testing.T) {
	held, next := recordtest.Grant(1, 0, "vm-12345-ab12"), recordtest.Grant(2, 1, "vm-12346-cd34")
	for name, now := range map[string]time.Time{
		"today":    recordtest.Noon.Add(time.Minute),
		"tomorrow": recordtest.Noon.AddDate(0, 0, 1),
	} {
		s := snapshot{glimpse: glimpse{at: now, store: "sqlite:leases.db"}, workerType: "export", rows: history.Read([]store.Record{next, held}, recordtest.Noon.Add(time.Minute), nil)}
		lines := s.tableLines(false)
		dated := name == "tomorrow"
		if start := strings.Fields(lines[1])[0]; (start == "2026-03-02T12:00:00Z") != dated || (start == "12:00:00Z") == dated {
			t.Errorf("a slot of today, shown %s, starts at %q", name, start)
		}
		for _, line := range lines {
			if len(line) > 80 && !dated {
				t.Errorf("line %q has %d columns, want at most 80", line, len(line))
			}
			if strings.Contains(line, "GROUP") || strings.Contains(line, "NOTE") {
				t.Errorf("heading %q: there are no groups and notes", line)
			}
		}
	}
	fraction := held
	fraction.SlotEnd = fraction.SlotEnd.Add(500 * time.Millisecond)
	s := snapshot{glimpse: glimpse{at: recordtest.Noon}, rows: history.Read([]store.Record{fraction}, recordtest.Noon, nil)}
	if line := s.tableLines(false)[1]; !strings.HasPrefix(line, "12:00:00.000Z  12:05:00.500Z  ") {
		t.Errorf("a slot that ends within a second: %q", line)
	}
}

// jobs is a ledger of jobs of each slot, at 12:42: done at once, at the second
// attempt and on the way out, not done, and made up for.
func jobs() *memory.Ledger {
	l := ledgerAt(recordtest.Noon.Add(42 * time.Minute))
	seq := int64(0)
	var newest store.Record
	put := func(r store.Record, change func(*store.Record)) store.Record {
		seq++
		r.Seq, r.DoneUntil = seq, newest.DoneUntil
		change(&r)
		newest = r
		l.Put(r)
		return r
	}
	try := func(n int, from, to float64, who string, attempt int) store.Record {
		r := recordtest.Grant(1, n, who)
		return put(recordtest.Part(1, r, from, to), func(r *store.Record) {
			if r.Attempt = attempt; attempt > 1 {
				r.Token, r.FixedAt = r.WindowStart.UnixMilli(), r.WindowStart
			}
		})
	}
	finish := func(g store.Record, n int, at float64) {
		until := recordtest.Minutes(5 * float64(n+1))
		put(recordtest.Done(g, 1, until, recordtest.Minutes(at)), func(r *store.Record) { r.DoneUntil = until })
	}
	giveUp := func(g store.Record, at float64) {
		put(recordtest.Release(g, 1, recordtest.Minutes(at)), func(*store.Record) {})
	}
	finish(try(0, 0, 1, "worker-a", 1), 0, 0.5)
	giveUp(try(1, 5, 6, "worker-a", 1), 5.2)
	finish(try(1, 6, 7, "worker-b", 2), 1, 6.5)
	last := try(2, 10, 11, "worker-a", 1)
	finish(last, 2, 10.25)
	giveUp(last, 10.3)
	giveUp(try(3, 15, 16, "worker-a", 1), 15.1)
	giveUp(try(3, 16, 17, "worker-b", 2), 16.1)
	late := try(8, 40, 41, "worker-c", 1)
	finish(late, 7, 40.5)
	try(8, 41, 45, "worker-c", 1)
	return l
}

// outcomes is a ledger that tells what came of the work of slots.
func outcomes() *memory.Ledger {
	minutes := recordtest.Minutes
	l := ledgerAt(minutes(21))
	seq := int64(0)
	var until time.Time
	put := func(r store.Record) store.Record {
		seq++
		if r.Seq = seq; r.Kind != store.KindDone {
			r.DoneUntil = until
		}
		until = r.DoneUntil
		l.Put(r)
		return r
	}
	try := func(n int, who string, attempt int) store.Record {
		r := recordtest.Grant(1, n, who)
		r.Attempt = attempt
		return put(r)
	}
	told := func(r, of store.Record, ended float64, result store.Result, change func(o *store.Outcome)) {
		o := recordtest.Outcome(of, minutes(ended), result)
		if change != nil {
			change(&o)
		}
		r.Metadata = o.Metadata()
		put(r)
	}
	exits := func(o *store.Outcome) { o.ExitCode, o.Exited, o.Error = 3, true, "exit code 3, ended by itself" }
	done := try(0, "worker-a", 1)
	told(recordtest.Done(done, 1, done.SlotEnd, minutes(4.1)), done, 4.05, store.Succeeded, nil)
	failed := try(1, "worker-a", 1)
	told(recordtest.Release(failed, 1, minutes(5.25)), failed, 5.2, store.Failed, exits)
	again := recordtest.Part(1, recordtest.Grant(1, 1, "worker-b"), 5.5, 10)
	again.Attempt, again.Token, again.FixedAt = 2, failed.Token+1, minutes(5.4)
	again = put(again)
	told(recordtest.Done(again, 1, again.SlotEnd, minutes(7)), again, 7, store.Succeeded, func(o *store.Outcome) { o.Begun = minutes(5.5) })
	last := try(2, "worker-a", 2)
	told(recordtest.Release(last, 1, minutes(10.5)), last, 10.5, store.Failed, func(o *store.Outcome) {
		exits(o)
		o.GivenUp = true
	})
	hostile := try(3, "worker-b", 0)
	told(recordtest.Told(hostile, 1, store.Outcome{}), hostile, 15.01, store.Failed, func(o *store.Outcome) { o.Error = "no disk\x1b[2J\nstack" })
	kept := try(4, "worker-b", 0)
	told(recordtest.Told(kept, 1, store.Outcome{}), kept, 20.2, store.Failed, exits)
	return l
}

// extending is a ledger of slots that have a hundred parts each, and then one that
// is taken over twice.
func extending() *memory.Ledger {
	l := ledgerAt(recordtest.Noon.Add(5*time.Minute + 150*time.Second))
	seq := int64(0)
	for n := -20; n <= 0; n++ {
		g := recordtest.Grant(1, n, "worker-a")
		for i := range 100 {
			seq++
			r := recordtest.Part(seq, g, 5*float64(n)+float64(i)/20, 5*float64(n)+float64(i+1)/20)
			if i > 0 {
				r.FixedAt = r.WindowStart.Add(-time.Second)
			}
			l.Put(r)
		}
	}
	g := recordtest.Grant(1, 1, "worker-a")
	for i, from := range []float64{5, 6, 6.2, 7} {
		seq++
		r := recordtest.Part(seq, g, from, []float64{6, 6.1, 7, 8}[i])
		if i > 1 {
			r.InstanceID, r.Claim, r.Token, r.FixedAt = "worker-b", "taken over", recordtest.Noon.Add(372*time.Second).UnixMilli(), r.WindowStart
		}
		l.Put(r)
	}
	return l
}

func TestALeaseThatIsExtendedIsOneRow(t *testing.T) {
	// What is shown of the first row is all of it, or what can be known.
	s := decoded(t, extending(), 1000)
	for i, row := range s.Slots {
		if row.ClaimedMs == nil || i < 20 && (*row.ClaimedMs != -9234 || row.Extended != 99 || row.NewestSeq != row.Seq+99) {
			t.Errorf("row %d is %+v, want all of it", i, row)
		}
	}
	if len(s.Slots) != 23 {
		t.Errorf("%d rows, want 23", len(s.Slots))
	}
}
