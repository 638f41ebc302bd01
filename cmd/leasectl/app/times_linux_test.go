package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// says waits until a process says of itself, in each place, that it holds the lease, and that its command runs, or that not.
func (p *process) says(holds, runs bool) {
	p.t.Helper()
	count := map[bool]int{true: 1}
	procs.Eventually(p.t, fmt.Sprintf("/status and /metrics say that it holds: %v, and that the command runs: %v", holds, runs), func() bool {
		_, status := probed(p.t, p, "/status")
		_, scrape := probed(p.t, p, "/metrics")
		return strings.Contains(status, fmt.Sprintf(`"running":%v,`, runs)) && strings.Contains(status, fmt.Sprintf(`"holds":%v,`, holds)) &&
			strings.Contains(scrape, fmt.Sprintf("slotlease_task_running{worker_type=\"t\"} %d\n", count[runs])) &&
			strings.Contains(scrape, fmt.Sprintf("slotlease_lease_holding{worker_type=\"t\"} %d\n", count[holds]))
	})
}

// A daemon ends with a failure, and another machine has it again, within 10 s by the ledger.
func TestADaemonThatFailsRunsOnAnotherMachineSoon(t *testing.T) {
	t.Parallel()
	l, storeArg := newLedger(t)
	file := filepath.Join(t.TempDir(), "fails")
	flags := []string{"--every", "1m", "--continuous", "--failover-within", "10s", "--listen", ":0"}
	a := startRun(t, storeArg, "a", flags, "sh", "-c", `while [ ! -e "$0" ]; do sleep 0.05; done; exit 1`, file)
	a.await("command started")
	a.says(true, true)
	b := startRun(t, storeArg, "b", append(flags, "--priority", "1"), "sleep", "1000")
	b.await(`standby: held by "a"`)
	b.says(false, false)
	must(t, os.WriteFile(file, nil, 0o600))
	b.await("command started")
	b.says(true, true)
	a.says(false, false)
	all := records(t, l)
	i := slices.IndexFunc(all, func(r store.Record) bool { return r.InstanceID == "b" && r.Kind == store.KindGrant })
	if failed, ok := all[i-1].Outcome(); !ok || failed.ExitCode != 1 {
		t.Errorf("%+v, want the failure, before another has it", all[i-1])
	}
	procs.Within(t, "from the end of the one to the lease of the other", all[i].WindowStart.Sub(all[i-1].WindowEnd), 10*time.Second)
	ends(t, a, b)
}

// A command that has ended while its lease lasts doesn't run, whatever the lease is kept for.
func TestACommandThatHasEndedIsNotSaidToRun(t *testing.T) {
	for _, then := range []string{"keep", "restart"} {
		t.Run(then, func(t *testing.T) {
			t.Parallel()
			_, storeArg := newLedger(t)
			p := startRun(t, storeArg, "a", []string{"--every", oneSlot, "--continuous", "--on-exit", then, "--listen", ":0"}, "true")
			p.await("command: exit code 0")
			p.says(true, false)
			if then == "restart" { // twice as late each time
				p.awaitMatch(`(?s)started again in 1s.* started again in 2s.* started again in 4s`)
			}
			ends(t, p)
		})
	}
}

// A run that is cut has failed: the ledger has its cause, and the log a line at WARN.
func TestARunThatTakesTooLongIsStoppedAndHasFailed(t *testing.T) {
	for name, test := range map[string]struct {
		flags []string
		cause store.Cause
		ends  string // with what exit code the command ends, when it is told to; "": by the signal
	}{
		"by its time":         {[]string{"--every", oneSlot, "--start-within", oneSlot, "--run-timeout", "1s"}, store.TimedOut, "0"},
		"at the slot's end":   {[]string{"--every", "4s", "--start-within", "4s", "--overrun", "stop"}, store.SlotEnded, ""},
		"by its time, ending": {[]string{"--every", "2s", "--start-within", "2s", "--run-timeout", "5s"}, store.TimedOut, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			command := []string{"sleep", "1000"}
			if test.ends != "" {
				command = []string{"sh", "-c", "trap 'exit " + test.ends + "' TERM; sleep 1000 & wait"}
			}
			p := startRun(t, storeArg, "a", append(test.flags, "--once-per-slot", "--max-attempts", "1"), command...)
			var failed store.Outcome
			procs.Eventually(t, "the run has failed", func() bool {
				for _, r := range records(t, l) {
					if o, ok := r.Outcome(); ok && o.Result == store.Failed && o.Cause == test.cause { // On a busy machine one may be lost before.
						failed = o
						return true
					}
				}
				return false
			})
			if !failed.GivenUp || failed.Attempt != 1 {
				t.Errorf("the ledger says %+v, want that it was the last attempt", failed)
			}
			p.awaitMatch(`(?m)^\S* ?WARN .*failed.*` + string(test.cause))
			ends(t, p)
			for _, r := range records(t, l) {
				if r.Kind == store.KindDone {
					t.Errorf("the ledger says that slot %s is done", store.Format(r.SlotStart))
				}
			}
		})
	}
}

// The slot in which a worker starts is left to others, if it is told so.
func TestAWorkerMayWaitForTheBoundary(t *testing.T) {
	t.Parallel()
	l, storeArg := newLedger(t)
	before := storeTime(t, l)
	p := startRun(t, storeArg, "a", []string{"--every", "3s", "--failover-within", "1s", "--wait-for-boundary"}, "sleep", "1000")
	p.await("command started")
	if first := records(t, l)[0]; first.SlotStart.Before(before) || !first.WindowStart.Equal(first.SlotStart) {
		t.Errorf("the first lease is %+v, want one from the start of a slot after %s", first, store.Format(before))
	}
	ends(t, p)
}

// A slot that can't be had any more ends --once with code 14, whatever the reason.
func TestASlotThatHasPassedHasACodeOfItsOwn(t *testing.T) {
	t.Parallel()
	t.Run("it began too long ago", func(t *testing.T) {
		t.Parallel()
		_, storeArg := newLedger(t)
		code, out := current(t, storeArg, "a", []string{"--once-per-slot", "--start-within", "10ms"}, "echo", "working")
		if code != exit.Missed || strings.Contains(out, "working\n") {
			t.Errorf("it ended with %d, want %d:\n%s", code, exit.Missed, out)
		}
	})
	t.Run("an earlier one's run went on into it", func(t *testing.T) {
		t.Parallel()
		l, storeArg := newLedger(t)
		now := storeTime(t, l)
		slot := slots.Must(slots.Every(2400 * time.Hour)).At(now)
		g := recordtest.Grant(1, 0, "z")
		g.WorkerType, g.Schedule, g.SlotStart, g.SlotEnd = "t", "every 2400h", slot.Start.Add(-2400*time.Hour), slot.Start
		g.WindowStart, g.WindowEnd = g.SlotStart, now.Truncate(time.Millisecond)
		for _, r := range []store.Record{g, recordtest.Done(g, 2, slot.End, g.WindowEnd)} {
			must(t, l.Append(t.Context(), r))
		}
		code, out := current(t, storeArg, "a", []string{"--once-per-slot"}, "echo", "working")
		if code != exit.Missed || !strings.Contains(out, `skipped, since "z" still ran for an earlier one`) || strings.Contains(out, "working\n") {
			t.Errorf("it ended with %d, want %d:\n%s", code, exit.Missed, out)
		}
	})
}
