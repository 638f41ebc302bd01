package guard

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/suites"
)

// parent is a running parentHelper.
type parent struct {
	cmd            *exec.Cmd
	out            *bufio.Scanner
	command, guard int
	deadline       time.Duration
}

func startParent(t *testing.T, mark string, left, grace time.Duration, command ...string) *parent {
	t.Helper()
	return startParentAs(t, "/proc/self/exe", os.Getuid(), mark, left, grace, command...)
}

// startParentAs starts parentHelper from a copy of the test binary, as a user.
func startParentAs(t *testing.T, self string, uid int, mark string, left, grace time.Duration, command ...string) *parent {
	t.Helper()
	p := newParent(self, uid, mark, left, grace, command...)
	if begun := time.Now(); !p.begin(t) {
		procs.TooLate(t, begun, "the parent started nothing")
	}
	return p
}

func newParent(self string, uid int, mark string, left, grace time.Duration, command ...string) *parent {
	p := &parent{cmd: exec.Command(self, append([]string{helperArg, "parent", left.String(), grace.String()}, command...)...)}
	if uid != os.Getuid() {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	p.cmd.Env = marked(mark)
	p.cmd.Stderr = os.Stderr
	return p
}

// begin starts the parent, and reports whether it started its command.
func (p *parent) begin(t *testing.T) bool {
	t.Helper()
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	p.out = bufio.NewScanner(out)
	var deadline int64
	if !p.out.Scan() {
		return false
	}
	if _, err := fmt.Sscan(p.out.Text(), &p.command, &p.guard, &deadline); err != nil {
		t.Fatalf("the parent printed %q: %v", p.out.Text(), err)
	}
	p.deadline = time.Duration(deadline)
	return true
}

// startFamilyUnderParent runs the family under a guard under another process. It has the more time the slower the machine is.
func startFamilyUnderParent(t *testing.T, mark string, grace time.Duration) *parent {
	t.Helper()
	for left := 4 * time.Second; ; left *= 2 {
		ready := filepath.Join(t.TempDir(), "ready")
		p := newParent("/proc/self/exe", os.Getuid(), mark, left, grace, "/proc/self/exe", helperArg, "family", ready)
		if p.begin(t) && awaitFamily(t, mark, ready, p.deadline) {
			return p
		}
		_ = p.cmd.Wait()
		procs.Gone(t, func() []int { return carriers(mark) })
	}
}

func signalTo(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatalf("kill(%d, %v) = %v", pid, s, err)
	}
}

func TestKillingTheParentAtAnyMomentLeavesNothing(t *testing.T) {
	suites.Prove(t, "its deadline is seconds away")
	t.Parallel()
	const window = 600 * time.Millisecond
	for i := range 8 {
		mark := newMark(t)
		p := startParent(t, mark, window, 100*time.Millisecond, "/bin/sh", "-c",
			`trap "" TERM; setsid sh -c 'trap "" TERM; sleep 1000 & wait' & sh -c 'sleep 1000 & wait' & wait; sleep 1000`)
		// Before, within and after the grace, at the deadline and in the backup.
		time.Sleep(time.Duration(i) * (p.deadline - Boottime()) / 6)
		signalTo(t, p.cmd.Process.Pid, syscall.SIGKILL)
		procs.Gone(t, func() []int { return carriers(mark) })
	}
}

func TestEveryDescendantDiesAtTheDeadline(t *testing.T) {
	t.Parallel()
	for name, stopped := range map[string]bool{"the parent runs": false, "the parent is stopped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := newMark(t)
			p := startFamilyUnderParent(t, mark, 100*time.Millisecond)
			if stopped {
				signalTo(t, p.cmd.Process.Pid, syscall.SIGSTOP)
			}
			late := wantGone(t, mark, "the deadline", p.deadline, deadlineSlack)
			if late < 0 {
				t.Errorf("killed %v before the deadline, though SIGTERM was ignored", -late)
			}
			signalTo(t, p.cmd.Process.Pid, syscall.SIGCONT)
			if want := killedBy9.because(DeadlineReached).String() + "; <nil>"; !p.out.Scan() || p.out.Text() != want {
				t.Errorf("the parent says %q, want %q", p.out.Text(), want)
			}
		})
	}
}

func TestKillingTheGuardLeavesNothingToASubreaper(t *testing.T) {
	becomeSubreaper(t)
	before := children(syscall.Getpid()) // What helpers of other tests left may be among them.
	mark := newMark(t)
	other := runFamily(t, newMark(t), time.Hour, 0)
	p := runFamily(t, mark, time.Hour, 0)
	start := Boottime()
	signalTo(t, p.guard.pid(), syscall.SIGKILL)
	wantGone(t, mark, "SIGKILL of the guard", start, time.Second)
	got, err := p.Wait()
	if want := killedBy9.because(GuardDied); got != want || !isError(err, ErrGuardDied) {
		t.Errorf("Wait() = %v, %v, want %v, %v", got, err, want, ErrGuardDied)
	}
	select {
	case <-other.done:
		t.Error("the family of another guard was killed, too")
	default:
	}
	for _, child := range children(syscall.Getpid()) {
		if s, ok := stat(child); ok && s.dead() && !slices.Contains(before, child) {
			t.Errorf("zombie left: %+v", s)
		}
	}
}

func TestKillingTheGuardKillsItsSessionWithoutASubreaper(t *testing.T) {
	mark := newMark(t)
	p := startParent(t, mark, time.Hour, 0, "/bin/sh", "-c", "(sleep 1000 & sleep 1000) & sleep 1000")
	procs.Eventually(t, "the command has its children", func() bool { return len(carriers(mark)) >= 4 })
	start := Boottime()
	signalTo(t, p.guard, syscall.SIGKILL)
	wantGone(t, mark, "SIGKILL of the guard", start, time.Second)
	if !p.out.Scan() || !strings.Contains(p.out.Text(), ErrGuardDied.Error()) {
		t.Errorf("the parent says %q, want %q", p.out.Text(), ErrGuardDied)
	}
}

// A guard that is stopped is continued; one that is stopped again and again, as a debugger
// may, is backed up.
func TestAGuardThatIsStoppedKeepsNothingAlive(t *testing.T) {
	becomeSubreaper(t)
	for name, again := range map[string]bool{"once": false, "again and again": true} {
		t.Run(name, func(t *testing.T) {
			mark := newMark(t)
			p := runFamily(t, mark, time.Hour, 0)
			signalTo(t, p.guard.pid(), syscall.SIGSTOP)
			procs.Eventually(t, "the guard is stopped", func() bool {
				s, ok := stat(p.guard.pid())
				return ok && s.state == 'T'
			})
			halt := make(chan struct{})
			defer close(halt)
			go func() {
				for again {
					select {
					case <-halt:
						return
					case <-time.After(200 * time.Microsecond):
						_ = p.guard.cmd.Process.Signal(syscall.SIGSTOP)
					}
				}
			}()
			start := Boottime()
			if err := p.Kill(); err != nil {
				t.Errorf("Kill() = %v", err)
			}
			wantGone(t, mark, "Kill", start, time.Second)
			wantStatus(t, p, killedBy9.because(Killed))
		})
	}
}

func TestStopAndSignalsToTheGuardGiveTheGrace(t *testing.T) {
	ways := map[string]func(t *testing.T, p *Process){
		"Stop": func(t *testing.T, p *Process) {
			t.Helper()
			if err := p.Stop(); err != nil {
				t.Fatalf("Stop() = %v", err)
			}
		},
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		ways[s.String()] = func(t *testing.T, p *Process) {
			t.Helper()
			signalTo(t, p.guard.pid(), s)
		}
	}
	for name, stop := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := newMark(t)
			p, file := runTidy(t, mark, time.Hour, time.Minute)
			stop(t, p)
			wantStatus(t, p, Status{Code: 3, Reason: Stopped})
			if lines := procs.Lines(file); !slices.Equal(lines, []string{"tidied"}) {
				t.Errorf("the command wrote %q, want that it tidied up", lines)
			}
			procs.Gone(t, func() []int { return carriers(mark) })
		})
	}
}
