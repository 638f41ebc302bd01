package docs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

// movedJobs writes the jobs.yaml of docs/coming-from.md, with slots of another length and another command.
func movedJobs(t *testing.T, dir string, every time.Duration, command string) string {
	t.Helper()
	for _, b := range read(t, "docs/coming-from.md").blocks() {
		if b.lang == "yaml jobs.yaml" {
			text := strings.NewReplacer("schedule: \"*/5 * * * *\"\n  zone: UTC\n", fmt.Sprintf("every: %v\n", every), "command: echo swept", fmt.Sprintf("command: %q", command)).Replace(b.text)
			if strings.Count(text, command[:5]) == 0 || !strings.Contains(text, "every: ") {
				t.Fatalf("the jobs of docs/coming-from.md are not those that are known here:\n%s", text)
			}
			path := filepath.Join(dir, "jobs.yaml")
			must(t, os.WriteFile(path, []byte(text), 0o600))
			return path
		}
	}
	t.Fatal("docs/coming-from.md has no jobs.yaml")
	return ""
}

// A run that cron has made just before leasectl cron is started, and that no ledger knows, is not made again.
func TestTheRunJustBeforeAMoveIsNotMadeAgain(t *testing.T) {
	suites.Prove(t, "it waits for slots")
	t.Parallel()
	const period = 10 * time.Second
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	jobs := movedJobs(t, dir, period, `echo "$LEASE_SLOT_START" >> `+ran)
	c := exec.Command(filepath.Join(build(t), "leasectl"), "cron", jobs)
	c.Env = append(os.Environ(), "LEASECTL_STORE=sqlite:"+filepath.Join(dir, "leases.db"))
	slot := time.Now().Truncate(period).Add(period)
	time.Sleep(time.Until(slot))
	must(t, c.Start())
	time.Sleep(time.Until(slot.Add(period * 3 / 2)))
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait()
	runs, err := os.ReadFile(ran)
	if want := slot.Add(period).UTC().Format("2006-01-02T15:04:05.000Z\n"); err != nil || string(runs) != want {
		t.Errorf("the slots that were run are %q, %v, want %q alone: cron had made the run before", runs, err, want)
	}
}

// Two machines whose crontabs run leasectl run --once, as docs/coming-from.md says, and two with leasectl cron run each slot
// once: the old ones alone, both, and the new ones alone. One of the old has a clock that is early, and so meets the slot
// before the one that is due. CronJobs run the same command.
func TestCrontabAndJobsSideBySide(t *testing.T) {
	suites.Prove(t, "it runs a job for a minute")
	t.Parallel()
	const period = 5 * time.Second
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	command := `echo "$LEASE_SLOT_START $LEASE_INSTANCE_ID" >> ` + ran
	jobs := movedJobs(t, dir, period, command)
	leasectl := func(args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(build(t), "leasectl"), args...)
		c.Env = append(os.Environ(), "LEASECTL_STORE=sqlite:"+filepath.Join(dir, "leases.db"))
		return c
	}
	if out, err := leasectl("init").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	from := time.Now().Truncate(period).Add(2 * period)
	at := func(n float64) time.Time { return from.Add(time.Duration(n * float64(period))) }
	var running sync.WaitGroup
	for machine, early := range map[string]time.Duration{"old-a": 0, "old-early": 200 * time.Millisecond} {
		running.Go(func() {
			for n := range 6 {
				if n == 0 && early > 0 {
					continue // The slot before the first one was nobody's, and ends while leasectl starts: it would be missed.
				}
				time.Sleep(time.Until(at(float64(n)).Add(-early + time.Duration(rand.IntN(100))*time.Millisecond)))
				c := leasectl("run", "--once", "--once-per-slot", "--max-attempts", "3", "--worker-type", "sweep", "--every", period.String(),
					"--instance-id", machine, "--", "sh", "-c", command)
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", machine, err, out)
				}
			}
		})
	}
	time.Sleep(time.Until(at(1.5)))
	for _, machine := range []string{"new-a", "new-b"} {
		c := leasectl("cron", "--instance-id", machine, jobs)
		must(t, c.Start())
		defer func() {
			_ = c.Process.Signal(syscall.SIGTERM)
			_ = c.Wait()
		}()
	}
	running.Wait()
	time.Sleep(time.Until(at(8.5)))
	all, err := os.ReadFile(ran)
	must(t, err)
	runs := string(all)
	for n := range 9 {
		if slot := at(float64(n)).UTC().Format("2006-01-02T15:04:05.000Z"); strings.Count(runs, slot) != 1 {
			t.Errorf("the slot %s was run %d times, want once", slot, strings.Count(runs, slot))
		}
	}
	if !strings.Contains(runs, "old-") || !strings.Contains(runs, "new-") {
		t.Error("not both systems have run slots")
	}
	if t.Failed() {
		t.Logf("from %v on\n%s", from.UTC(), runs)
	}
}
