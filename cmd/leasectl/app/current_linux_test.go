package app

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/store"
)

// startCurrent starts leasectl run --once in a slot that is longer than any test.
func startCurrent(t *testing.T, storeArg, name string, flags []string, command ...string) *process {
	t.Helper()
	args := []string{"run", "--once", "--store", storeArg, "--worker-type", "t", "--instance-id", name, "--every", oneSlot}
	return start(t, append(append(append(args, flags...), "--"), command...)...)
}

// current runs leasectl run --once to its end, and returns its exit code and output.
func current(t *testing.T, storeArg, name string, flags []string, command ...string) (int, string) {
	t.Helper()
	p := startCurrent(t, storeArg, name, flags, command...)
	code := p.wait()
	if left := p.descendants(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return code, p.output()
}

// head is the newest record of a ledger.
func head(t *testing.T, l store.Ledger) store.Record {
	t.Helper()
	all := records(t, l)
	return all[len(all)-1]
}

// failedOutcome is what the ledger says of work that has failed.
func failedOutcome(t *testing.T, l store.Ledger) store.Outcome {
	t.Helper()
	for _, r := range slices.Backward(records(t, l)) {
		if o, ok := r.Outcome(); ok && o.Result == store.Failed {
			return o
		}
	}
	t.Error("the ledger has no failure")
	return store.Outcome{}
}

// Eight processes want the slot at one moment, as those of eight machines whose cron starts them.
func TestOfEightThatRunOnceOneHasTheSlot(t *testing.T) {
	for name, test := range map[string]struct {
		flags  []string
		script string
		code   int
	}{
		"a command":                    {nil, `echo "$LEASE_INSTANCE_ID" >> "$0"; while [ ! -e "$0.go" ]; do sleep 0.01; done; exit 7`, 7},
		"a job":                        {[]string{"--once-per-slot"}, `echo "$LEASE_INSTANCE_ID" >> "$0"`, 0},
		"a command, with its own code": {[]string{"--conflict-exit-code", "0"}, `echo "$LEASE_INSTANCE_ID" >> "$0"; while [ ! -e "$0.go" ]; do sleep 0.01; done; exit 7`, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			file := filepath.Join(t.TempDir(), "runs")
			ps := make([]*process, 8)
			for i := range ps {
				ps[i] = startCurrent(t, storeArg, fmt.Sprint("w", i), test.flags, "sh", "-c", test.script, file)
			}
			// Only when the others have ended may the winner give back a slot that isn't done.
			procs.Eventually(t, "seven end", func() bool {
				ended := 0
				for _, p := range ps {
					select {
					case <-p.done:
						ended++
					default:
					}
				}
				return ended >= len(ps)-1
			})
			must(t, os.WriteFile(file+".go", nil, 0o600))
			conflict := exit.Unallocated
			if len(test.flags) > 0 { // A job is done, by whomever.
				conflict = exit.OK
			}
			for i, p := range ps {
				code, won := p.wait(), slices.Equal(procs.Lines(file), []string{fmt.Sprint("w", i)})
				if want := map[bool]int{true: test.code, false: conflict}[won]; code != want {
					t.Errorf("worker %d, which ran the command: %v, ended with %d, want %d", i, won, code, want)
				}
				if out := p.output(); won == strings.Contains(out, "not claimed: held by ") && won == strings.Contains(out, "is done already, by ") || strings.Contains(out, "leasectl: ") {
					t.Errorf("worker %d, which ran the command: %v, wrote\n%s", i, won, out)
				}
			}
			if runs := procs.Lines(file); len(runs) != 1 {
				t.Errorf("the command was run by %q, want one", runs)
			}
			wantSound(t, l)
		})
	}
}

func TestWhatRunsOnceInASlotAndComesAgain(t *testing.T) {
	t.Parallel()
	t.Run("a command", func(t *testing.T) {
		t.Parallel()
		l, storeArg := newLedger(t)
		for i, name := range []string{"a", "b"} { // The first gives the slot back.
			code, out := current(t, storeArg, name, nil, "sh", "-c", fmt.Sprint("exit ", i))
			if code != i || !strings.Contains(out, "released at ") || head(t, l).Kind != store.KindRelease {
				t.Errorf("%s ended with %d, and the head is %+v, want %d and a release", name, code, head(t, l), i)
			}
		}
	})
	t.Run("a job", func(t *testing.T) {
		t.Parallel()
		l, storeArg := newLedger(t)
		job := []string{"--once-per-slot", "--max-attempts", "2", "--min-retry", "10ms"}
		if code, _ := current(t, storeArg, "a", job, "sh", "-c", "exit 3"); code != 3 || !head(t, l).DoneUntil.IsZero() {
			t.Errorf("a job that fails ended with %d, and the head is %+v, want 3, and that it isn't done", code, head(t, l))
		}
		if o := failedOutcome(t, l); o.ExitCode != 3 || o.InstanceID != "a" || o.Attempt != 1 {
			t.Errorf("the ledger says %+v, want exit code 3", o)
		}
		code, out := current(t, storeArg, "b", job, "sh", "-c", "exit 0")
		if code != exit.OK || !strings.Contains(out, ": done\n") || !head(t, l).DoneUntil.Equal(head(t, l).SlotEnd) {
			t.Errorf("the next one ended with %d, and the head is %+v, want 0, and that it is done", code, head(t, l))
		}
		code, out = current(t, storeArg, "c", job, "sh", "-c", "echo again")
		if code != exit.OK || !strings.Contains(out, `is done already, by "b"; next slot 20`) || strings.Contains(out, "again") {
			t.Errorf("when it is done, another ended with %d, want 0", code)
		}
		stays := startOnce(t, storeArg, "d", oneSlot, "100s", nil, "true")
		stays.await("is done already") // It goes by the same record.
		ends(t, stays)
	})
	t.Run("a job that fails", func(t *testing.T) {
		t.Parallel()
		l, storeArg := newLedger(t)
		job := []string{"--once-per-slot", "--max-attempts", "3", "--min-retry", "1s"}
		for _, name := range []string{"a", "b"} {
			if code, _ := current(t, storeArg, name, job, "false"); code != 1 {
				t.Errorf("%s ended with %d, want 1", name, code)
			}
		}
		// The third one waits until it may begin; it is the last.
		if code, out := current(t, storeArg, "c", job, "false"); code != 1 || !strings.Contains(out, "it was the last attempt") {
			t.Errorf("the third attempt ended with %d, want 1:\n%s", code, out)
		}
		all := records(t, l)
		i := slices.IndexFunc(all, func(r store.Record) bool { return r.InstanceID == "c" })
		if waited := all[i].WindowStart.Sub(all[i-1].WindowEnd); waited < 2*time.Second {
			t.Errorf("the third attempt came %v after the second one had failed, want no sooner than twice --min-retry", waited)
		}
		if o := failedOutcome(t, l); !o.GivenUp || o.Attempt != 3 {
			t.Errorf("the ledger says %+v, want that it is given up", o)
		}
		for range 2 {
			if code, out := current(t, storeArg, "d", append(job, "--log-level", "warn", "--conflict-exit-code", "9"), "false"); code != exit.GivenUp || !strings.Contains(out, "given up: not done, and not tried again") {
				t.Errorf("after the last attempt, another ended with %d, want %d:\n%s", code, exit.GivenUp, out)
			}
		}
	})
	t.Run("a job that may not be tried again for long", func(t *testing.T) {
		t.Parallel()
		_, storeArg := newLedger(t)
		job := []string{"--once-per-slot", "--min-retry", "1h", "--log-level", "warn", "--timeout", "10m"}
		_, _ = current(t, storeArg, "a", job, "false")
		if code, out := current(t, storeArg, "b", job, "true"); code != exit.TooSoon || !strings.Contains(out, "WARN ") {
			t.Errorf("the second ended with %d, want %d:\n%s", code, exit.TooSoon, out)
		}
	})
	t.Run("a job that is paused", func(t *testing.T) {
		t.Parallel()
		_, storeArg := newLedger(t)
		mustRun(t, nil, "pause", "--store", storeArg, "--worker-type", "t", "--for", "1h", "--reason", "test")
		if code, out := current(t, storeArg, "a", []string{"--once-per-slot", "--log-level", "warn"}, "true"); code != exit.Missed || !strings.Contains(out, "paused") {
			t.Errorf("it ended with %d, want %d:\n%s", code, exit.Missed, out)
		}
	})
}

// Killed in the middle, a worker that runs once leaves nothing behind but its lease: for the slot,
// or with --failover-within for that long.
func TestWhoComesAfterOneThatWasKilledWhileItRanOnce(t *testing.T) {
	for name, test := range map[string]struct {
		flags   []string
		another bool
	}{
		"a command":                  {nil, false},
		"a command, taken over soon": {[]string{"--failover-within", "3s"}, true},
		"a job":                      {[]string{"--once-per-slot", "--failover-within", "3s"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if len(test.flags) > 0 {
				brief(t)
			}
			t.Parallel()
			l, storeArg := newLedger(t)
			first := startCurrent(t, storeArg, "a", test.flags, "sh", "-c", family)
			first.await("family up")
			if waits := slices.Contains(test.flags, "--once-per-slot"); waits { // for the end of the one that is killed
				p := startCurrent(t, storeArg, "b", test.flags, "echo", "working")
				p.await(`not claimed: held by "a"`)
				first.signal(syscall.SIGKILL)
				if code := p.wait(); code != exit.OK || !strings.Contains(p.output(), "working") {
					t.Errorf("who waited ended with %d, want that it ran the command:\n%s", code, p.output())
				}
				return
			}
			killed := time.Now()
			first.signal(syscall.SIGKILL)
			first.goneAfterKill(killed)
			var out string
			begun := false
			for end := time.Now().Add(5 * time.Second); !begun && time.Now().Before(end); {
				code := 0
				if code, out = current(t, storeArg, "b", test.flags, "echo", "working"); code == exit.OK {
					begun = true
				} else if code != exit.Unallocated || !strings.Contains(out, `not claimed: held by "a"`) {
					t.Fatalf("the next one ended with %d, want %d while the lease lasts", code, exit.Unallocated)
				}
			}
			if begun != test.another {
				t.Fatalf("another has run it: %v, want %v", begun, test.another)
			}
			if begun {
				all := records(t, l)
				last := all[slices.IndexFunc(all, func(r store.Record) bool { return r.InstanceID == "b" })-1]
				if took := all[len(all)-1]; took.WindowStart.Before(last.WindowEnd) || !strings.Contains(out, "working") {
					t.Errorf("%+v came before the end of %+v", took, last)
				}
			}
			wantSound(t, l)
		})
	}
}

func TestASignalStopsWhatRunsOnce(t *testing.T) {
	for name, test := range map[string]struct {
		flags    []string
		script   string
		code     int
		finished bool
	}{
		"a command that heeds it":   {[]string{"--stop-grace", "1h"}, `trap 'sleep 0.3; echo told; exit 5' TERM; echo up; while :; do sleep 0.02; done`, 5, false},
		"a command that ignores it": {[]string{"--stop-grace", "1s"}, `trap '' TERM; echo told; echo up; sleep 1000; sleep 1000`, 128 + 9, false},
		"a job that is done":        {[]string{"--once-per-slot", "--failover-within", "10h", "--stop-grace", "5m"}, `trap 'sleep 0.3; echo told; exit 0' TERM; echo up; while :; do sleep 0.02; done`, 0, true},
		"a job that isn't":          {[]string{"--once-per-slot", "--failover-within", "10h", "--stop-grace", "5m"}, `trap 'sleep 0.3; echo told; exit 5' TERM; echo up; while :; do sleep 0.02; done`, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			p := startCurrent(t, storeArg, "a", test.flags, "sh", "-c", test.script)
			p.await("up\n")
			p.await("command started") // before that, it isn't known to run
			p.signal(syscall.SIGTERM)
			if code := p.wait(); code != test.code {
				t.Errorf("it ended with %d, want the command's %d", code, test.code)
			}
			out := p.output()
			if !strings.Contains(out, "told\n") || !strings.Contains(out, "stopping: terminated\n") || !strings.Contains(out, "stopping the command\n") || !strings.HasSuffix(out, "stopped\n") {
				t.Error("it wasn't stopped as it should be")
			}
			if left := p.descendants(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if r := head(t, l); r.DoneUntil.IsZero() == test.finished || !test.finished && r.Kind != store.KindRelease {
				t.Errorf("the head is %+v, want a release, and that it tells of what is done: %v", r, test.finished)
			}
		})
	}
}

// A store that doesn't answer keeps what cron has started for as long as it is told to, and no longer.
func TestWhatRunsOnceWaitsForAStoreThatLong(t *testing.T) {
	t.Parallel()
	// Connections are accepted, and never answered.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	storeArg := "mongodb://" + l.Addr().String() + "/jobs"
	begun := time.Now()
	code, out := current(t, storeArg, "a", []string{"--timeout", "3s"}, "echo", "working")
	procs.Within(t, "a store that is down", time.Since(begun), 12*time.Second) // with the start of a process on a busy machine
	if code != exit.Unreachable || !strings.Contains(out, "leasectl: the slot could not be claimed within 3s: ") || strings.Contains(out, "working") {
		t.Errorf("with a store that is down it ended with %d, want %d", code, exit.Unreachable)
	}
	p := startCurrent(t, storeArg, "a", nil, "true")
	p.await("; trying on\n")
	told := time.Now()
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != exit.Interrupted || !strings.Contains(p.output(), "stopping: terminated\n") {
		t.Errorf("a signal before the claim: %d, want %d", code, exit.Interrupted)
	}
	procs.Within(t, "stopping with a store that is down", time.Since(told), 2*time.Second)
}
