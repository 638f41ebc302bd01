package app

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// markName is the environment variable by which the descendants of a test's
// processes are found, wherever they have gone.
const markName = "LEASECTL_TEST_MARK"

// process is leasectl as a process of its own.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	mark string
	tmp  string // its folder for temporary files
	done chan struct{}
	read chan struct{} // closed when the output has ended

	pipe *os.File // the reading end of the output

	mu  sync.Mutex
	out bytes.Buffer // standard output and error
}

// byFacts are the tests of processes that are in the quick run, too: they are judged by what is in the ledger, by exit codes, by
// what is said and in which order, and by what is left. A busy machine only delays that.
var byFacts = []string{
	"TestTheCommandKnowsItsLeaseAndNotTheStore", "TestSIGTERMStopsTheCommandThenReleases", "TestAnotherTakesOverWhenLeasectlIsKilled",
	"TestASignalThatWasIgnoredAtTheStartStaysIgnored", "TestAStoreThatIsDownIsToldAtOnceAndKeepsNobodyFromStopping",
	"TestAJobThatIsStoppedIsDoneOrLeftToOthers", "TestOfEightThatRunOnceOneHasTheSlot", "TestWhatRunsOnceInASlotAndComesAgain",
	"TestASignalStopsWhatRunsOnce", "TestWhatRunsOnceWaitsForAStoreThatLong", "TestTheFirstSignalLetsARunComeToItsEnd", "TestTheThirdSignalKillsARunThatDrains",
}

// proveProcesses leaves the quick run the tests of byFacts.
func proveProcesses(t *testing.T) {
	t.Helper()
	if name, _, _ := strings.Cut(t.Name(), "/"); !slices.Contains(byFacts, name) {
		suites.Prove(t, "it runs leasectl as processes")
	}
}

// start starts leasectl with a mark in its environment, which all that descends
// from it inherits. Nothing of it outlives the test.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startUnder(t, nil, args...)
}

// startUnder is start under another program, which becomes leasectl.
func startUnder(t *testing.T, under []string, args ...string) *process {
	t.Helper()
	proveProcesses(t)
	p := &process{t: t, mark: rand.Text(), tmp: t.TempDir(), done: make(chan struct{}), read: make(chan struct{})}
	self, err := os.Executable()
	must(t, err)
	argv := append(append(slices.Clone(under), self), args...)
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env = append(os.Environ(), asLeasectl+"=1", markName+"="+p.mark, "TMPDIR="+p.tmp, cosmos.KeyVariable+"="+cosmospeer.Key())
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r, w, err := os.Pipe()
	must(t, err)
	p.cmd.Stdout, p.cmd.Stderr, p.pipe = w, w, r
	must(t, p.cmd.Start())
	_ = w.Close()
	go func() {
		defer close(p.read)
		_, _ = io.Copy(p, r)
	}()
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		if t.Failed() { // Its stacks are in its output then.
			_ = p.cmd.Process.Signal(syscall.SIGABRT)
			select {
			case <-p.done:
			case <-time.After(time.Second): // realtime: the stacks of what hangs
			}
		}
		_ = p.cmd.Process.Kill()
		<-p.done
		for _, pid := range p.descendants() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if t.Failed() {
			t.Logf("output of leasectl %q:\n%s", args, p.output())
		}
	})
	return p
}

// startRun starts leasectl run with slots of 1 s for the worker type t.
func startRun(t *testing.T, storeArg, name string, flags []string, command ...string) *process {
	t.Helper()
	args := []string{"run", "--store", storeArg, "--worker-type", "t", "--instance-id", name, "--every", "1s", "-v"}
	return start(t, append(append(append(args, flags...), "--"), command...)...)
}

// Write takes the output.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// await waits for a text in the output.
func (p *process) await(text string) {
	p.t.Helper()
	p.awaitMatch(regexp.QuoteMeta(text))
}

// awaitMatch waits for a match of a pattern in the output, and returns it with its groups.
func (p *process) awaitMatch(pattern string) (match []string) {
	p.t.Helper()
	procs.Eventually(p.t, fmt.Sprintf("a match of %q in the output", pattern), func() (over bool) {
		select {
		case <-p.read:
			over = true
		default:
		}
		match = regexp.MustCompile(pattern).FindStringSubmatch(p.output())
		return over || match != nil
	})
	if match == nil {
		p.t.Fatalf("leasectl has ended without a match of %q in its output", pattern)
	}
	return match
}

// unread closes the reading end of the output.
func (p *process) unread() {
	p.t.Helper()
	if err := p.pipe.Close(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits for the end of leasectl, and of its output, and returns its exit
// code.
func (p *process) wait() int {
	p.t.Helper()
	for _, end := range []chan struct{}{p.done, p.read} {
		select {
		case <-end:
		case <-suites.Deadline(p.t).Done():
			p.t.Fatalf("leasectl, or its output, doesn't end")
		}
	}
	return p.cmd.ProcessState.ExitCode()
}

// exits waits for the end of leasectl, and demands an exit code.
func (p *process) exits(want int) {
	p.t.Helper()
	if code := p.wait(); code != want {
		p.t.Errorf("leasectl has ended with %d, want %d:\n%s", code, want, p.output())
	}
}

// wantSound demands that nothing is wrong with a ledger.
func wantSound(t *testing.T, l store.Ledger) {
	t.Helper()
	if problems := verify.Strict(records(t, l)); len(problems) > 0 {
		t.Errorf("the ledger: %q", problems)
	}
}

// descendants are the living processes that carry the mark, but for leasectl
// itself; guards don't carry it.
func (p *process) descendants() []int {
	return slices.DeleteFunc(procs.Carrying(markName+"="+p.mark), func(pid int) bool { return pid == p.cmd.Process.Pid })
}

// gone waits until no descendant is left, and returns when one was last seen, and
// when none was first.
func (p *process) gone() (alive, dead time.Time) {
	p.t.Helper()
	return procs.Gone(p.t, p.descendants)
}

// goneAfterKill waits until no descendant is left of a leasectl that was killed at a time.
func (p *process) goneAfterKill(killed time.Time) {
	p.t.Helper()
	if alive, _ := p.gone(); !alive.IsZero() {
		procs.Within(p.t, "from SIGKILL of leasectl to when some of the family was seen last", alive.Sub(killed), time.Second)
	}
}

// records reads a ledger, the oldest record first.
func records(t *testing.T, l store.Ledger) []store.Record {
	t.Helper()
	tail, _, err := l.Tail(t.Context(), "t", 1000)
	must(t, err)
	slices.Reverse(tail)
	return tail
}

// holding waits until one of the processes has a command running, and returns
// its index and the slot.
func holding(t *testing.T, ps []*process, after string) int {
	t.Helper()
	found := -1
	procs.Eventually(t, "a holder", func() bool {
		for i, p := range ps {
			if _, out, ok := strings.Cut(p.output(), after); ok && strings.Contains(out, "command started") {
				found = i
				return true
			}
		}
		return false
	})
	return found
}

// brief leaves out a test whose leases, or slots, last for a second or two, where the race detector makes the start of a command take
// longer than that beside other tests.
func brief(t *testing.T) {
	t.Helper()
	if race.Enabled {
		t.Skip("with the race detector, starting a command takes longer than its lease lasts, beside other tests")
	}
}
