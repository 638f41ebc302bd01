package guard

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/internal/signals"
	"github.com/slotlease/slotlease/internal/suites"
)

// helperArg as the first argument makes the test binary one of the programs
// below instead of a test.
const helperArg = "guard-test-helper"

// markName is the environment variable by which tests find the processes that
// descend from a command, wherever they have gone.
const markName = "GUARD_TEST_MARK"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == helperArg {
		if err := helper(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(99)
		}
		os.Exit(0)
	}
	// The race detector would make every process, guards too, sleep for a second
	// before it exits.
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	signals.Heed()
	procs.Feel()
	parallel.Waiting() // for processes
	os.Exit(m.Run())
}

func helper(name string, args []string) error {
	switch name {
	case "family":
		return familyHelper(args[0])
	case "start":
		// Starts a command in a session of its own and leaves it behind.
		cmd := exec.Command(args[0], args[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Start()
	case "root":
		// The test made this binary set-user-ID.
		if err := syscall.Setresuid(0, 0, 0); err != nil {
			return err
		}
		time.Sleep(time.Hour)
	case "bomb":
		reserveThreads()
		for {
			cmd := exec.Command("sleep", "1000")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			_ = cmd.Start()
		}
	case "parent":
		return parentHelper(args)
	case "late":
		return lateHelper()
	case "init":
		return initHelper()
	case "sandbox":
		return enterSandbox(args)
	case "child":
		return killsChild()
	case "world":
		return enterWorld(args)
	default:
		return fmt.Errorf("no helper %q", name)
	}
	return nil
}

// familyHelper ignores SIGTERM and has every kind of descendant; then it writes
// the file that tells so.
func familyHelper(ready string) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	// Children and grandchildren in the group.
	if err := exec.Command("/bin/sh", "-c", "sleep 1000 & sleep 1000 & wait").Start(); err != nil {
		return err
	}
	// A child in a session of its own, with a child.
	session := exec.Command("/bin/sh", "-c", "sleep 1000 & wait")
	session.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := session.Start(); err != nil {
		return err
	}
	// A daemon: in a new session, its parent, also in a new session, gone.
	daemon := exec.Command("/proc/self/exe", helperArg, "start", "/bin/sh", "-c", "sleep 1000 & wait")
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := daemon.Run(); err != nil {
		return err
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		return err
	}
	time.Sleep(time.Hour)
	return nil
}

// familySize is how many processes familyHelper becomes.
const familySize = 1 + 3 + 2 + 2

// parentHelper starts the rest of the arguments as a command that must be over
// args[0] from now, with the grace args[1]; then tells how it ended.
func parentHelper(args []string) error {
	left, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	grace, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	if os.Getuid() == stranger {
		reserveThreads()
		if err := limitProcesses(); err != nil {
			return err
		}
	}
	if os.Getenv("GUARD_TEST_SUBREAPER") == "true" {
		if err := BecomeSubreaper(); err != nil {
			return err
		}
	}
	deadline := Boottime() + left
	p, err := Start(Command{Path: args[2], Args: args[3:], Deadline: deadline, Grace: grace, Stderr: os.Stderr})
	if err != nil {
		return err
	}
	fmt.Printf("%d %d %d\n", p.PID(), p.guard.pid(), int64(deadline))
	s, err := p.Wait()
	fmt.Printf("%v; %v\n", s, err)
	return nil
}

// newMark returns a value of markName that only this test uses, and makes sure
// that nothing which carries it outlives the test.
func newMark(t *testing.T) string {
	t.Helper()
	mark := rand.Text()
	t.Cleanup(func() {
		for _, pid := range carriers(mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return mark
}

func marked(mark string) []string {
	return append(os.Environ(), markName+"="+mark)
}

// carriers returns the living processes whose environment has the mark, apart
// from parents.
func carriers(mark string) []int {
	return slices.DeleteFunc(procs.Carrying(markName+"="+mark), func(pid int) bool {
		argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || bytes.Contains(argv, []byte(helperArg+"\x00parent\x00"))
	})
}

// deadlineSlack is how late after the deadline a process may be seen. A few
// milliseconds are the guard's; the rest is for the looking.
const deadlineSlack = 500 * time.Millisecond

// wantGone waits until no process carries the mark, fails the test if one was seen
// later than the limit after since, and returns how long after it none was.
func wantGone(t *testing.T, mark, since string, at, limit time.Duration) time.Duration {
	t.Helper()
	alive, dead := procs.Gone(t, func() []int { return carriers(mark) })
	now, boot := time.Now(), Boottime()
	if alive.IsZero() {
		alive = dead
	}
	procs.Within(t, "from "+since+" to when a descendant was seen last", boot-now.Sub(alive)-at, limit)
	return boot - now.Sub(dead) - at
}

// run starts a command whose descendants carry the mark.
func run(t *testing.T, mark string, left, grace time.Duration, command ...string) *Process {
	t.Helper()
	begun := time.Now()
	p, err := Start(Command{
		Path: command[0], Args: command[1:], Env: marked(mark), Stderr: os.Stderr,
		Deadline: Boottime() + left, Grace: grace,
	})
	if errors.Is(err, ErrTooLate) || errors.Is(err, ErrUnsaid) || time.Since(begun) > left/2 {
		end(p)
		procs.TooLate(t, begun, fmt.Sprintf("of %v too much passed while a command started: %v", left, err))
	}
	if err != nil {
		t.Fatalf("Start(%q) = %v", command, err)
	}
	t.Cleanup(func() {
		end(p)
		if len(p.guard.said) > 0 {
			t.Errorf("the guard wrote to its standard error:\n%s", p.guard.said)
		}
	})
	return p
}

// end ends a command, if it still runs.
func end(p *Process) {
	if p != nil {
		_ = p.Kill()
		_, _ = p.Wait()
	}
}

// runFamily runs familyHelper and returns when all its members are there.
func runFamily(t *testing.T, mark string, left, grace time.Duration) *Process {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	p := run(t, mark, left, grace, "/proc/self/exe", helperArg, "family", ready)
	awaitFamily(t, mark, ready, p.watch.deadline)
	return p
}

// awaitFamily waits until the family is complete, or its time is over.
func awaitFamily(t *testing.T, mark, ready string, deadline time.Duration) (complete bool) {
	t.Helper()
	procs.Eventually(t, "the family is complete", func() bool {
		_, err := os.Stat(ready)
		complete = err == nil && len(carriers(mark)) == familySize
		return complete || Boottime() >= deadline
	})
	return complete
}

// wantStatus waits for the end of a command and checks how it ended.
func wantStatus(t *testing.T, p *Process, want Status) {
	t.Helper()
	select {
	case <-p.done:
	case <-suites.Deadline(t).Done():
		t.Fatalf("the command, wanted %v, hasn't ended", want)
	}
	if got, err := p.Wait(); got != want || err != nil {
		t.Errorf("Wait() = %v, %v, want %v, <nil>", got, err, want)
	}
}

var killedBy9 = Status{Code: -1, Signal: syscall.SIGKILL}

func (s Status) because(r Reason) Status {
	s.Reason = r
	return s
}
