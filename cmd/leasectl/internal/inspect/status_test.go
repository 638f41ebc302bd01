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
	if s.width = 300; !strings.Contains(s.drawing(false, true), "NOTE") {
		t.Errorf("status in 300 columns =\n%s\nwant the notes as a column", s.drawing(false, true))
	}
}
