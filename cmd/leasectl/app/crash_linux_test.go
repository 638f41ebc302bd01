package app

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

func TestWhatFollowsTheEndOfACommand(t *testing.T) {
	for name, test := range map[string]struct {
		flags        []string
		script       string
		again, other bool // it is started again here; another worker begins
		says         string
	}{
		"a success":                {nil, "exit 0", false, false, "exit code 0"},
		"a failure":                {nil, "exit 3", false, true, "WARN  slot "},
		"a success of a daemon":    {[]string{"--continuous"}, "exit 0", true, false, "the command is started again in 2s"},
		"a failure of a daemon":    {[]string{"--continuous"}, "exit 3", false, true, "failed: exit code 3"},
		"a success, with release":  {[]string{"--on-exit", "release"}, "exit 0", false, true, "released at "},
		"a daemon's, with release": {[]string{"--on-exit", "release", "--continuous"}, "exit 0", false, true, "released at "},
		"a failure, with keep":     {[]string{"--on-exit", "keep"}, "exit 3", false, false, "WARN  slot "},
		"a failure, with restart":  {[]string{"--on-exit", "restart"}, "exit 3", true, false, "the command is started again in 2s"},
		"a daemon's, with restart": {[]string{"--on-exit", "restart", "--continuous"}, "kill -9 $$", true, false, "the command is started again in 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			file := filepath.Join(t.TempDir(), "runs")
			flags := append([]string{"--every", oneSlot, "--failover-within", "6s"}, test.flags...)
			a := startRun(t, storeArg, "a", flags, "sh", "-c", `echo run >> "$0"; `+test.script, file)
			a.await("command started")
			b := startRun(t, storeArg, "b", append(flags, "--priority", "1"), "sleep", "1000")
			a.await(test.says)
			if test.other {
				b.await("command started")
			} else {
				b.await(`standby: held by "a"`)
			}
			if test.again {
				procs.Eventually(t, "it is started again", func() bool { return len(procs.Lines(file)) >= 2 })
			} else {
				time.Sleep(1500 * time.Millisecond)
				if runs := len(procs.Lines(file)); runs != 1 {
					t.Errorf("it was run %d times, want once", runs)
				}
			}
			if began := strings.Contains(b.output(), "command started"); began != test.other {
				t.Errorf("another began: %v, want %v", began, test.other)
			}
			failed := false
			for _, r := range records(t, l) {
				o, ok := r.Outcome()
				failed = failed || ok && o.Result == store.Failed
			}
			if want := test.script != "exit 0"; failed != want {
				t.Errorf("the ledger says that it failed: %v, want %v", failed, want)
			}
			ends(t, a, b)
		})
	}
}

// The CronJob of the documentation, with slots and failover that a test can wait for. Whatever pod is killed: the one
// that ends with 0 proves that the report is made, and it is made once.
func TestACronJobCompletesOnlyWhenItsReportIsMade(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	dir := t.TempDir()
	places := make(chan struct{}, 4) // of the machine
	for i := range 20 {
		name := fmt.Sprint("report-", i)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			random := rand.New(rand.NewPCG(uint64(i), 41))
			file := filepath.Join(dir, name)
			pod := func(n int) *process {
				return start(t, "run", "--once", "--once-per-slot", "--store", storeArg, "--worker-type", name, "--instance-id", fmt.Sprint("pod-", n),
					"--every", oneSlot, "--failover-within", "1s", "--", "sh", "-c", `sleep 0.4; [ -e "$0" ] || echo made >> "$0"`, file)
			}
			wait := func(most time.Duration) { time.Sleep(time.Duration(random.Int64N(int64(most)))) }
			made := func(p *process, code int) {
				if _, err := os.Stat(file); code == exit.OK && err != nil {
					t.Errorf("a pod is complete, and the report isn't made: %v\n%s", err, p.output())
				}
			}
			for n := range 2 { // The pod, and its replacement.
				p := pod(n)
				wait(time.Second)
				_ = p.cmd.Process.Kill() // It may have ended.
				made(p, p.wait())
				wait(300 * time.Millisecond)
			}
			code, pods := -1, 0
			for ; code != exit.OK && pods < 4; pods++ { // A busy machine may end a run with its lease.
				p := pod(2 + pods)
				code = p.wait()
				made(p, code)
			}
			if lines := procs.Lines(file); code != exit.OK || len(lines) != 1 {
				t.Errorf("after %d more pods, the last ended with %d, and the report was made %d times, want 0 and once", pods, code, len(lines))
			}
		})
	}
}

func TestWhoWaitsForASlotWaitsNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	job := []string{"--once-per-slot", "--log-level", "warn"}
	a := startCurrent(t, storeArg, "a", []string{"--once-per-slot"}, "sh", "-c", "echo up; exec sleep 1000")
	a.await("up\n")
	if code, out := current(t, storeArg, "b", append(job, "--timeout", "700ms"), "echo", "no"); code != exit.Unallocated || !strings.Contains(out, `not done yet by "a"`) {
		t.Errorf("it ended with %d, want %d:\n%s", code, exit.Unallocated, out)
	}
	c := startCurrent(t, storeArg, "c", []string{"--once-per-slot"}, "echo", "no")
	c.await(`held by "a"`)
	c.signal(syscall.SIGTERM)
	if code := c.wait(); code != exit.Interrupted {
		t.Errorf("told to end while it waits, it ended with %d, want %d", code, exit.Interrupted)
	}
	d := startCurrent(t, storeArg, "d", []string{"--once-per-slot"}, "echo", "mine")
	d.await(`held by "a"`)
	a.signal(syscall.SIGTERM)
	if code := d.wait(); code != exit.OK || !strings.Contains(d.output(), "mine") {
		t.Errorf("when the slot is given back, who waits ended with %d, want that it ran the command:\n%s", code, d.output())
	}
	_ = a.wait()
}

// A run that its slot is too short for goes on, and nobody begins the slot that it runs into.
func TestARunThatIsLongerThanItsSlotFinishes(t *testing.T) {
	t.Parallel()
	flags := []string{"--every", "6s", "--once-per-slot", "--max-attempts", "2", "--failover-within", "3s"}
	late := procs.Again(t, func() bool {
		l, storeArg := newLedger(t)
		file := filepath.Join(t.TempDir(), "runs")
		job := []string{"sh", "-c", `echo "$LEASE_SLOT_START" >> "$0"; sleep 8; echo done >> "$0"`, file}
		a, b := startRun(t, storeArg, "a", flags, job...), startRun(t, storeArg, "b", append(flags, "--priority", "1"), job...)
		procs.Eventually(t, "two runs", func() bool { return len(procs.Lines(file)) >= 4 })
		out := a.output() + b.output()
		ends(t, a, b)
		if problems := verify.Strict(records(t, l)); len(problems) > 0 {
			t.Errorf("the ledger: %q", problems)
		}
		if strings.Contains(out, "failed: lease lost") {
			return true // The machine was too busy for the lease.
		}
		lines := procs.Lines(file)
		first, err := time.Parse(time.RFC3339, lines[0])
		if err != nil {
			t.Fatal(err)
		}
		if lines[1] != "done" || lines[2] != store.Format(first.Add(12*time.Second)) || lines[3] != "done" {
			t.Errorf("the runs were %q, want that each finishes, and that every other slot is skipped", lines)
		}
		if !strings.Contains(out, "skipped: still running since ") {
			t.Errorf("the log doesn't say that a slot was skipped:\n%s", out)
		}
		return false
	})
	if late {
		t.Error("a lease was lost each time")
	}
}
