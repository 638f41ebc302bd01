package app

import (
	"fmt"
	"math/rand/v2"
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

// The CronJob of the documentation, with a slot that doesn't end now and a failover that a test can wait for. A pod and its
// replacement are killed, at any moment or within their runs: one that ends with 0 proves that the report is made, which is made
// once more only if its pod is killed before it could say so.
func TestACronJobCompletesOnlyWhenItsReportIsMade(t *testing.T) {
	t.Parallel()
	places := make(chan struct{}, 4) // of the machine
	manifest := documentedCronJob(t)
	slot := fmt.Sprintf("0 %d * * *", time.Now().UTC().Add(12*time.Hour).Hour())
	for i := range 20 {
		name := fmt.Sprint("report-", i)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			places <- struct{}{}
			defer func() { <-places }()
			random := rand.New(rand.NewPCG(uint64(i), 41))
			file := filepath.Join(t.TempDir(), name)
			pods := 0
			pod := func() *process {
				pods++
				args := append(manifest(slot), "--worker-type", "t", "--failover-within", "10s", "--store", storeArg, "--instance-id", fmt.Sprint("pod-", pods))
				return start(t, append(args, "--", "sh", "-c", `echo "begun $LEASE_TOKEN" >> "$0"; sleep 0.4; echo "made $LEASE_TOKEN" >> "$0"`, file)...)
			}
			complete := func(p *process) bool {
				code := p.wait()
				if code == exit.OK && !slices.ContainsFunc(procs.Lines(file), func(line string) bool { return strings.HasPrefix(line, "made ") }) {
					t.Errorf("a pod is complete, and no report is made:\n%s", p.output())
				}
				return code == exit.OK
			}
			wait := func(most time.Duration) { time.Sleep(time.Duration(random.Int64N(int64(most)))) }
			gone := map[string]bool{} // pods that were killed
			for range 2 {             // The pod, and its replacement.
				p, begun := pod(), len(procs.Lines(file))
				if i%2 == 0 {
					procs.Eventually(t, "the run begins", func() bool { return len(procs.Lines(file)) > begun })
					wait(400 * time.Millisecond)
				} else {
					wait(time.Second)
				}
				_ = p.cmd.Process.Kill() // It may have ended.
				if complete(p) {
					break
				}
				gone[fmt.Sprint("pod-", pods)] = true
				wait(300 * time.Millisecond)
			}
			for n, p := range []*process{pod(), pod(), nil} { // Beside one another, and one that comes later.
				if p == nil {
					p = pod()
				}
				if !complete(p) {
					t.Fatalf("pod %d that nobody kills ended with %d, want 0\n%s", n+1, p.wait(), p.output())
				}
			}
			all, killed := records(t, l), map[string]bool{} // by the token
			for _, r := range all {
				killed[fmt.Sprint(r.Token)] = killed[fmt.Sprint(r.Token)] || gone[r.InstanceID]
			}
			begun, made, last := 0, 0, ""
			for _, line := range procs.Lines(file) {
				what, token, _ := strings.Cut(line, " ")
				if what == "begun" {
					if begun++; token <= last || last != "" && !killed[last] {
						t.Errorf("a run begins with token %s after one with %s, want a higher one, and that that was killed", token, last)
					}
					last = token
				} else if made++; token != last {
					t.Errorf("a run with token %s makes the report while one with %s runs", token, last)
				}
			}
			if made == 0 || begun > 3 {
				t.Errorf("%d runs made %d reports, want one, in at most 3", begun, made)
			}
			v := verify.New(verify.Options{WorkerType: "t", Now: time.Now(), Uncertainty: time.Second})
			for _, r := range all {
				v.Add(r)
			}
			if r := v.Report(); r.Faults > 0 {
				t.Errorf("verify finds %+v", r.Findings)
			}
		})
	}
}

// documentedCronJob is leasectl's arguments in the manifest of the documentation, but for its store and its command, by the spec of the
// slots.
func documentedCronJob(t *testing.T) func(cron string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../examples/deploy/kubernetes/cronjob.yaml")
	must(t, err)
	_, line, _ := strings.Cut(string(text), "command: [leasectl, ")
	line, _, found := strings.Cut(line, ", --store-file")
	var args []string
	for arg := range strings.SplitSeq(line, ",") {
		args = append(args, strings.Trim(strings.TrimSpace(arg), `"`))
	}
	at := slices.Index(args, "--cron")
	if !found || at < 0 {
		t.Fatalf("the manifest's command is %q, want one with --cron", args)
	}
	return func(cron string) []string { return slices.Concat(args[:at+1], []string{cron}, args[at+2:]) }
}

func TestWhoWaitsForASlotWaitsNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	job := []string{"--once-per-slot", "--log-level", "warn"}
	a := startCurrent(t, storeArg, "a", []string{"--once-per-slot"}, "sh", "-c", "echo up; exec sleep 1000")
	a.await("up\n")
	if code, out := current(t, storeArg, "b", append(job, "--timeout", "5s"), "echo", "no"); code != exit.Unallocated || !strings.Contains(out, `not done yet by "a"`) {
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
	begun := time.Now() // realtime: a machine that was busy is no verdict
	l, storeArg := newLedger(t)
	file := filepath.Join(t.TempDir(), "runs")
	job := []string{"sh", "-c", `echo "$LEASE_SLOT_START" >> "$0"; sleep 8; echo done >> "$0"`, file}
	a, b := startRun(t, storeArg, "a", flags, job...), startRun(t, storeArg, "b", append(flags, "--priority", "1"), job...)
	procs.Eventually(t, "two runs", func() bool { return len(procs.Lines(file)) >= 4 })
	out := a.output() + b.output()
	ends(t, a, b)
	wantSound(t, l)
	if strings.Contains(out, "failed: lease lost") {
		procs.TooLate(t, begun, "a lease was lost")
	}
	lines := procs.Lines(file)
	first, err := time.Parse(time.RFC3339, lines[0])
	must(t, err)
	if lines[1] != "done" || lines[2] != store.Format(first.Add(12*time.Second)) || lines[3] != "done" {
		t.Errorf("the runs were %q, want that each finishes, and that every other slot is skipped", lines)
	}
	if !strings.Contains(out, "skipped: still running since ") {
		t.Errorf("the log doesn't say that a slot was skipped:\n%s", out)
	}
}
