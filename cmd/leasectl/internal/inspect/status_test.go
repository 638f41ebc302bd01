package inspect

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// many is a ledger in memory at 12:42:30 with worker types in all conditions.
func many(t *testing.T) *memory.Ledger {
	t.Helper()
	now := recordtest.Noon.Add(42*time.Minute + 30*time.Second)
	c := clock.NewMock()
	c.Set(now)
	l := memory.New(memory.Options{Clock: c})
	put := func(workerType string, records ...store.Record) {
		for _, r := range records {
			r.WorkerType = workerType
			l.Put(r)
		}
	}
	held := recordtest.Grant(2, 8, "worker-a")
	put("export", recordtest.Grant(1, 7, "worker-b"), held, recordtest.Grant(3, 9, "worker-c"))
	goesOn := recordtest.Grant(2, 8, "leader")
	goesOn.Claim, goesOn.Token = recordtest.Grant(1, 7, "leader").Claim, recordtest.Grant(1, 7, "leader").Token
	put("follow", recordtest.Grant(1, 7, "leader"), goesOn)
	group := recordtest.Grant(1, 8, "worker-d")
	group.Group = "north"
	put("group", group)
	failing := recordtest.Grant(1, 8, "worker-g")
	failed := recordtest.Outcome(failing, failing.SlotStart.Add(13*time.Second), store.Failed)
	failed.ExitCode, failed.Exited = 3, true
	put("failing", failing, recordtest.Told(failing, 2, failed))
	put("idle", recordtest.Grant(1, 3, "worker-e"))
	put("poison", recordtest.Grant(1, 8, "worker-f"), store.Record{Seq: 2, Defect: "field token: missing"})
	put("evil", recordtest.Grant(1, 8, "x\x1b[2J"))
	presence := func(id string, next time.Duration) store.Presence {
		return store.Presence{WorkerType: "export", ID: id, InstanceID: "worker-" + id, Phase: store.PhaseCandidate, Since: recordtest.Noon, Seen: now.Add(-time.Minute), Next: now.Add(next)}
	}
	if err := l.Attend(t.Context(), []store.Presence{presence("a", time.Minute), presence("b", time.Minute), presence("c", -30*time.Second)}); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestStatusShowsAllWorkerTypes(t *testing.T) {
	for name, o := range map[string]Options{
		"status.table": {Output: Table, Timeout: time.Minute},
		"status.json":  {Output: JSON, Timeout: time.Minute},
	} {
		var stdout bytes.Buffer
		if err := showStatus(t.Context(), storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}, many(t), o, Screen{Writer: &stdout}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(stdout.String(), "\x1b\a") {
			t.Errorf("control characters of the ledger are let through: %q", stdout.String())
		}
		golden.Compare(t, name, stdout.String())
	}
}

// What an operator must see isn't cut off by a narrow terminal.
func TestANarrowTerminalShowsTheNotesBelowTheTable(t *testing.T) {
	s := overview{store: "sqlite:leases.db", width: 80}
	if err := s.take(t.Context(), &charges.Ledger{Ledger: many(t)}, ""); err != nil {
		t.Fatal(err)
	}
	got := fitted(s.drawing(true, true), 80)
	if !strings.Contains(got, "failing: exit code 3 after 12s") || !strings.Contains(got, "idle: nobody has the slot") {
		t.Errorf("status in 80 columns =\n%s\nwant all notes", got)
	}
	if got := s.drawing(false, false); strings.Contains(got, "NOTE") || !strings.Contains(got, "failing: exit code 3 after 12s") {
		t.Errorf("status in 80 columns without --watch =\n%s\nwant the notes below", got)
	}
	if s.width = 0; !strings.Contains(s.drawing(false, false), "NOTE") {
		t.Errorf("status into a pipe =\n%s\nwant the notes as a column", s.drawing(false, false))
	}
	if s.width = 300; !strings.Contains(s.drawing(false, true), "NOTE") {
		t.Errorf("status in 300 columns =\n%s\nwant the notes as a column", s.drawing(false, true))
	}
}

// What keeps everybody from claiming is in the note, also when the slot has begun that nobody has.
func TestStatusSaysWhyNobodyCanClaim(t *testing.T) {
	pause := store.Order{Kind: store.OrderPause, At: recordtest.Minutes(1), Until: recordtest.Minutes(60), By: "ann", Why: "upgrade"}
	paused := recordtest.Grant(1, 7, "worker-b")
	paused.Orders, _ = store.FormatOrders([]store.Order{pause})
	poison := store.Record{WorkerType: "export", Seq: 2, Defect: "token is missing"}
	ended := recordtest.Grant(1, 7, "worker-b")
	ended.Seq, ended.Kind, ended.WindowStart, ended.WindowEnd, ended.Schedule = 1, store.KindOrder, recordtest.Noon, recordtest.Noon, ""
	for name, test := range map[string]struct {
		records []store.Record
		now     float64
		want    string
	}{
		"poison in a slot that is held":    {[]store.Record{poison, recordtest.Grant(1, 7, "worker-b")}, 36, "record 2 can't be obeyed: leasectl doctor says what to do"},
		"poison in a slot that nobody has": {[]store.Record{poison, recordtest.Grant(1, 7, "worker-b")}, 42.5, "nobody has the slot; record 2 can't be obeyed: leasectl doctor says what to do"},
		"poison in a pause":                {[]store.Record{poison, paused}, 42.5, "paused until 2026-03-02T13:00:00.000Z by ann: upgrade; record 2 can't be obeyed: leasectl doctor says what to do"},
		"poison that was superseded":       {[]store.Record{recordtest.Grant(3, 8, "worker-b"), poison, recordtest.Grant(1, 7, "worker-b")}, 42.5, ""},
		"nothing but orders":               {[]store.Record{ended}, 42.5, "no slot yet"},
	} {
		if got := statusOf("export", test.records, recordtest.Minutes(test.now)).note; got != test.want {
			t.Errorf("%s: the note is %q, want %q", name, got, test.want)
		}
	}
}
