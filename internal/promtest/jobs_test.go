//go:build linux

package promtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A job succeeds, fails for good, succeeds again, takes longer than its slots, and is missed by all.
func TestAlertsFireForAJobAsItsLedgerSays(t *testing.T) {
	ledger, file := filepath.Join(t.TempDir(), "leases.db"), filepath.Join(t.TempDir(), "job")
	does := func(what string) {
		t.Helper()
		must(t, os.WriteFile(file, []byte(what), 0o600))
	}
	does(succeeds)
	w := start(t, "promlease", ledger, jobVariable+"="+file)
	s := serve(t, w.address)
	const overdue, failed, givenUp, skipped, missed, nobody = "SlotleaseJobOverdue", "SlotleaseTaskFailed", "SlotleaseSlotNotDone", "SlotleaseSlotsSkipped", "SlotleaseSlotsMissed", "SlotleaseNobodyHolds"
	all := func(is func(name string) bool, names ...string) func() bool {
		return func() bool {
			for _, name := range names {
				if !is(name) {
					return false
				}
			}
			return true
		}
	}
	fires := func(name string) bool { return s.firing(t, name) != "" }
	quiet := func(name string) bool { return s.firing(t, name) == "" }

	eventually(t, 4*interval, "it has succeeded", func() bool { return s.value(t, "max(slotlease_slots_done_total)") >= 1 })
	for began := time.Now(); time.Since(began) < 2*interval; time.Sleep(time.Second) {
		if !all(quiet, overdue, failed, givenUp, skipped, missed, nobody)() {
			t.Fatal("an alert fires for a job that succeeds")
		}
	}
	does(fails)
	eventually(t, 5*interval, "it fails for good", all(fires, failed, givenUp, overdue))
	if !quiet(nobody) {
		t.Error("nobody holds: that is for what has no job")
	}
	does(succeeds)
	eventually(t, 3*interval, "it has succeeded again", all(quiet, overdue))
	eventually(t, 6*interval, "nothing fails", all(quiet, failed, givenUp))
	does(overruns)
	eventually(t, 6*interval, "two slots in a row are skipped", all(fires, skipped, overdue))
	does(succeeds)
	eventually(t, 8*interval, "it succeeds in its slots", all(quiet, skipped, overdue))
	w.kill()
	time.Sleep(2 * interval)
	w = start(t, "promlease", ledger, jobVariable+"="+file)
	s.target(t, w.address)
	eventually(t, 3*interval, "the slots that nobody began are said by its successor", all(fires, missed))
	eventually(t, 6*interval, "all is well", all(quiet, overdue, failed, givenUp, skipped, missed))
}
