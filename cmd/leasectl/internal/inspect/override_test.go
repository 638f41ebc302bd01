package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease/history"
)

// blockedBy is a ledger of which the newest record leaves nothing to claim for long.
func blockedBy(records ...store.Record) *memory.Ledger {
	return recorded(6, records...)
}

// inStore is a command for the store of the tests.
func inStore(command string) string {
	if command == "" {
		return ""
	}
	return command + " --store sqlite:leases.db"
}

// Where nothing can be claimed for long, the command that ends it is shown.
func TestInspectSlotsNamesTheCommandThatEndsABlock(t *testing.T) {
	grant := recordtest.Grant(1, 0, "a")
	long, far := recordtest.Grant(2, 1, "b"), recordtest.Grant(2, 1, "b")
	long.WindowEnd, far.DoneUntil, far.Attempt = long.WindowEnd.AddDate(1, 0, 0), long.WindowEnd.AddDate(1, 0, 0), 1
	led, above := far, long
	led.Seq, led.Attempt, above.Seq = 3, 0, 5
	led.Claim, led.WindowStart, led.WindowEnd, led.Token = "c", recordtest.Minutes(10), recordtest.Minutes(15), led.Token+1
	poison := func(seq int64) store.Record {
		return store.Record{WorkerType: "export", Seq: seq, Defect: "not a record"}
	}
	ended := recordtest.Grant(3, 1, "op@host")
	ended.Kind, ended.Claim, ended.Token, ended.Metadata = store.KindOverride, "override", long.Token+1, "gone"
	ended.WindowStart, ended.WindowEnd = recordtest.Minutes(5.5), recordtest.Minutes(5.5)
	var much []store.Record
	for seq := range int64(120) {
		much = append(much, poison(200+seq))
	}
	for name, test := range map[string]struct {
		ledger *memory.Ledger
		last   int
		want   string // of the command; empty: none is named
	}{
		"a long window":           {blockedBy(grant, long), 20, "leasectl override --worker-type export --seq 2"},
		"slots done, and no jobs": {blockedBy(grant, far, led), 20, ""},
		"a long window, poison":   {blockedBy(grant, long, poison(3)), 20, "leasectl override --worker-type export --seq 3"},
		"above a free key":        {blockedBy(grant, above), 20, ""},
		"more poison than shown":  {blockedBy(much...), 10, "leasectl override --worker-type export --seq 319"},
		"below much poison":       {blockedBy(append([]store.Record{recordtest.Grant(199, 0, "a")}, much...)...), 10, ""},
		"a full ledger":           {blockedBy(poison(store.MaxSeq-2), poison(store.MaxSeq-1)), 20, ""},
		"slots done":              {blockedBy(grant, far), 20, "leasectl override --worker-type export --seq 2"},
		"nothing but poison":      {blockedBy(poison(205), poison(206), poison(207)), 1, "leasectl override --worker-type export --seq 207"},
		"poison, and no key":      {blockedBy(poison(205), store.Record{WorkerType: "export", Seq: store.MaxSeq + 1}), 20, "leasectl override --worker-type export --seq 205"},
		"poison above a record":   {blockedBy(grant, poison(2)), 1, ""},
		"poison from the start":   {blockedBy(poison(1), poison(2)), 20, ""},
		"a slot that is held":     {blockedBy(grant, recordtest.Grant(2, 1, "b")), 20, ""},
		"what was overridden":     {blockedBy(grant, long, ended), 20, ""},
		"a ledger without slots":  {blockedBy(), 20, ""},
	} {
		o := Options{WorkerType: "export", Last: test.last, Timeout: time.Minute}
		got, err := shown(t, test.ledger, o)
		if _, try, _ := strings.Cut(got, "\ntry: "); err != nil || strings.TrimSpace(try) != inStore(test.want) {
			t.Errorf("%s: inspect slots = %s, %v, want it to end with %q", name, got, err, test.want)
		}
		var s snapshot
		if err := s.take(t.Context(), test.ledger, o, 0); err != nil || s.try != test.want {
			t.Errorf("%s: try %q, %v, want %q", name, s.try, err, test.want)
		}
	}
	s := decoded(t, blockedBy(grant, long, ended), 20)
	if len(s.Slots) != 3 || s.Try != "" || s.Slots[1].State != "overridden" || s.Slots[1].Overridden != "2026-03-02T12:05:30.000Z" || s.Slots[1].Note != "at +30.0s" {
		t.Fatalf("inspect slots = %+v, want that the second is overridden", s)
	}
	if o := s.Slots[2]; o.State != "override" || o.InstanceID != "op@host" || o.WindowStart != "2026-03-02T12:05:30.000Z" || o.Note != "as of 2026-03-02T12:05:30.000Z: gone" {
		t.Errorf("the override is shown as %+v", o)
	}
	if s := decoded(t, blockedBy(grant, long), 20); s.Try != inStore("leasectl override --worker-type export --seq 2") {
		t.Errorf("try is %q, want the command", s.Try)
	}
}

func TestANoteThatIsCutStillSaysUntilWhenNothingCanBeClaimed(t *testing.T) {
	until := recordtest.Minutes(60 * 24 * 400)
	for name, e := range map[string]history.Entry{
		"a valid record": {State: "odd", Record: store.Record{Seq: 2, Metadata: strings.Repeat("m ", 200)}},
		"poison":         {State: history.Poison, Record: store.Record{Seq: 2, Defect: "d"}, Defect: strings.Repeat("工人", 200)},
		"combining":      {State: "odd", Record: store.Record{Seq: 2, Metadata: "a" + strings.Repeat("\u0301", 900)}},
		"nothing else":   {State: history.Poison, Record: store.Record{Seq: 2, Defect: "d"}},
	} {
		e.BlocksUntil = until
		row := cells(e, timeStyle{})
		note := row[len(row)-1]
		if blocked := "nothing to claim until " + store.Format(until); !strings.HasSuffix(note, ", "+blocked) || display.Width(note) > mostColumns {
			t.Errorf("%s: the note is %q, want it to end with %q in %d columns", name, note, blocked, mostColumns)
		}
		if whole := e.Note(); display.Width(whole) > mostColumns && !strings.Contains(note, "…") {
			t.Errorf("%s: the note is %q, want it cut", name, note)
		}
	}
}
