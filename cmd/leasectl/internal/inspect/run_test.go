package inspect

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// ran is a ledger in which a job's first attempt failed, its second one was done, and the next slot has begun.
func ran(t *testing.T) *memory.Ledger {
	t.Helper()
	first := recordtest.Grant(1, 1, "worker-a")
	first.Attempt = 1
	failed := recordtest.Release(first, 2, recordtest.Minutes(6))
	o := store.Outcome{
		Result: store.Failed, Exited: true, ExitCode: 3, Error: "exit code 3", InstanceID: "worker-a", Attempt: 1, SlotStart: first.SlotStart, SlotEnd: first.SlotEnd,
		Begun: first.SlotStart, Ended: recordtest.Minutes(6), Output: "…\nconnect to \x1b]0;evil\adb: \x1b[31mrefused\x1b[0m\r\n\tat line 3\n\n",
	}
	failed.Metadata = o.Metadata()
	second := recordtest.Part(3, first, 6, 10)
	second.InstanceID, second.Claim, second.Token, second.Attempt = "evil\x1b[2J", "c3", recordtest.Minutes(6).UnixMilli(), 2
	done := recordtest.Release(second, 4, recordtest.Minutes(7))
	done.Kind, done.WindowStart, done.WindowEnd, done.DoneUntil = store.KindDone, second.WindowEnd, second.WindowEnd, second.SlotEnd
	o.Result, o.Error, o.ExitCode, o.Exited, o.InstanceID, o.Attempt, o.Output = store.Succeeded, "", 0, false, second.InstanceID, 2, "42 invoices\n"
	done.Metadata = o.Metadata()
	return recorded(12, first, failed, second, done, recordtest.Grant(5, 2, "worker-a"))
}

func TestRunShowsWhatRunsWrote(t *testing.T) {
	l := ran(t)
	for name, q := range map[string]struct {
		at   string
		json bool
	}{"run.text": {"", false}, "run.json": {"", true}, "run-at.text": {"12:11", false}, "run-none.text": {"2026-03-01T12:00:00Z", false}} {
		var at Moment
		if q.at != "" {
			var err error
			if at, err = ParseMoment(q.at); err != nil {
				t.Fatal(err)
			}
		}
		var stdout bytes.Buffer
		o := Options{WorkerType: "export", Last: 10, JSON: q.json, Timeout: time.Minute}
		if err := showRun(t.Context(), storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}, l, o, at, Screen{Writer: &stdout}); err != nil {
			t.Fatal(name, err)
		}
		if strings.ContainsAny(stdout.String(), "\x1b\a\r\t") {
			t.Errorf("%s: control characters of the ledger are let through: %q", name, stdout.String())
		}
		golden.Compare(t, name, stdout.String())
	}
	why, err := whyOf(t, l, "", "12:06", "")
	if err != nil || !strings.Contains(why, "\nIts run under worker-a wrote at its end:\n  | …\n  | connect to ") || !strings.Contains(why, "  | 42 invoices\n") {
		t.Errorf("why = %s, %v, want what the runs wrote", why, err)
	}
}
