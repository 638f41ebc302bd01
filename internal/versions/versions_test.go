package versions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/internal/signals"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/internal/tmpfs"
)

// before is the version of the history, until there is a tag.
const before = "4f5de78c"

func TestMain(m *testing.M) {
	signals.Heed()
	tmpfs.Use()
	parallel.Waiting() // for slots
	code := m.Run()
	if builtDir != "" {
		_ = os.RemoveAll(builtDir)
	}
	os.Exit(code)
}

// builtDir is to be removed when the tests have ended.
var builtDir string

// programs are leasectl of the earlier version and of this one; the earlier one is empty if the history hasn't got it.
var programs = sync.OnceValues(func() (found [2]string, err error) {
	if builtDir, err = os.MkdirTemp("", "slotlease-versions-"); err != nil {
		return found, err
	}
	build := func(in, to string) (string, error) {
		c := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(builtDir, to), "./cmd/leasectl")
		c.Dir = in
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v in %s: %w\n%s", c, in, err, out)
		}
		return filepath.Join(builtDir, to), nil
	}
	const root = "../.."
	if found[1], err = build(root, "newer"); err != nil {
		return found, err
	}
	commit := before
	if tag, err := exec.Command("git", "-C", root, "describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^").Output(); err == nil {
		commit = strings.TrimSpace(string(tag))
	}
	archive, err := exec.Command("git", "-C", root, "archive", commit).Output()
	if err != nil {
		return found, nil
	}
	source := filepath.Join(builtDir, "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		return found, err
	}
	unpack := exec.Command("tar", "-x", "-C", source)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return found, fmt.Errorf("tar: %w\n%s", err, out)
	}
	found[0], err = build(source, "older")
	return found, err
})

// A fleet of two is upgraded, and then rolled back, each time by the worker that had the last slot: so each version takes over
// from the other.
func TestVersionsWorkSideBySideOnOneLedger(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the peers need Linux")
	}
	suites.Prove(t, "it builds an earlier version")
	both, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	if both[0] == "" {
		t.Skipf("this checkout has no earlier version, neither a tag nor %s: git fetch --unshallow", before)
	}
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			uri, env := s.fresh(t)
			f := &fleet{t: t, every: 6 * time.Second, failover: 3 * time.Second, env: append(os.Environ(), append(env, "LEASECTL_STORE="+uri)...), log: filepath.Join(t.TempDir(), "runs")}
			turn := 2 // slots
			if s.slow {
				f.every, f.failover, turn = 24*time.Second, 11*time.Second, 1
			}
			older, newer := both[0], both[1]
			f.ask(older, "init")
			f.start("a-older", older)
			f.start("b-older", older)
			for i, program := range []string{newer, newer, older, older} {
				f.await(turn)
				f.replace(fmt.Sprintf("%c-%s", 'c'+i, filepath.Base(program)), program)
			}
			f.await(1)
			f.expectOncePerSlot()
			for _, program := range both {
				f.ask(program, "verify")
				if out := f.ask(program, "inspect", "slots"); !strings.Contains(out, "done") {
					t.Errorf("%s shows no slot that is done:\n%s", filepath.Base(program), out)
				}
			}
		})
	}
}

// fleet is workers of one job.
type fleet struct {
	t               *testing.T
	every, failover time.Duration
	env             []string
	log             string // a line for each run
	workers         map[string]*exec.Cmd
}

// run is a run of the job, as its command has written it.
type run struct{ by, slot, token string }

func (f *fleet) runs() (all []run) {
	text, err := os.ReadFile(f.log)
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if w := strings.Fields(line); len(w) == 3 {
			all = append(all, run{w[0], w[1], w[2]})
		}
	}
	return all
}

// start starts a worker.
func (f *fleet) start(name, program string) {
	f.t.Helper()
	c := exec.Command(program, "run", "--worker-type", "job", "--every", f.every.String(), "--once-per-slot", "--failover-within", f.failover.String(),
		"--instance-id", name, "--", "sh", "-c", `echo "$LEASE_INSTANCE_ID $LEASE_SLOT_START $LEASE_TOKEN" >> `+f.log)
	c.Env = f.env
	var log bytes.Buffer
	c.Stderr = &log
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if f.t.Failed() {
			f.t.Logf("%s wrote\n%s", name, &log)
		}
	})
	if f.workers == nil {
		f.workers = map[string]*exec.Cmd{}
	}
	f.workers[name] = c
}

// replace stops the worker that ran the newest slot, in order, and starts another one. Its run is recorded by then: what was
// run, and wasn't recorded, is run again.
func (f *fleet) replace(name, program string) {
	f.t.Helper()
	all := f.runs()
	last := all[len(all)-1]
	f.start(name, program)
	suites.Eventually(f.t, "the slot "+last.slot+" is recorded as done", func() bool {
		var ledger struct {
			Slots []struct{ SlotStart, State string }
		}
		if err := json.Unmarshal([]byte(f.ask(program, "inspect", "slots", "--output", "json")), &ledger); err != nil {
			f.t.Fatal(err)
		}
		for _, s := range ledger.Slots {
			if s.SlotStart == last.slot && s.State == "done" {
				return true
			}
		}
		return false
	})
	stopped := f.workers[last.by]
	_ = stopped.Process.Signal(syscall.SIGTERM)
	if err := stopped.Wait(); err != nil {
		f.t.Errorf("%s ended with %v, want code 0", last.by, err)
	}
	delete(f.workers, last.by)
}

// await waits for so many more runs.
func (f *fleet) await(n int) {
	f.t.Helper()
	n += len(f.runs())
	suites.Eventually(f.t, fmt.Sprintf("%d slots have been run", n), func() bool { return len(f.runs()) >= n })
}

// expectOncePerSlot expects that no slot was run twice, that tokens have grown, and that both versions had slots.
func (f *fleet) expectOncePerSlot() {
	f.t.Helper()
	all := f.runs()
	for _, same := range []func(a, b run) bool{
		func(a, b run) bool { return a.slot == b.slot },
		func(a, b run) bool { return a.token == b.token },
	} {
		if len(slices.CompactFunc(slices.Clone(all), same)) < len(all) {
			f.t.Errorf("the runs are %v, want each slot once, with a token of its own", all)
		}
	}
	if !slices.IsSortedFunc(all, func(a, b run) int { return strings.Compare(a.slot, b.slot) }) ||
		!slices.IsSortedFunc(all, func(a, b run) int { return strings.Compare(a.token, b.token) }) {
		f.t.Errorf("the runs are %v, want slots and tokens in their order", all)
	}
	for _, version := range []string{"older", "newer"} {
		if !slices.ContainsFunc(all, func(r run) bool { return strings.HasSuffix(r.by, version) }) {
			f.t.Errorf("the runs are %v, want some of the %s version", all, version)
		}
	}
}

// ask runs a command, and returns what it writes.
func (f *fleet) ask(program string, args ...string) string {
	f.t.Helper()
	c := exec.Command(program, args...)
	c.Env = f.env
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		f.t.Errorf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}
