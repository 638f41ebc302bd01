package guard

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/suites"
)

func isError(err, target error) bool { return errors.Is(err, target) }

func becomeSubreaper(t *testing.T) {
	t.Helper()
	must(t, BecomeSubreaper())
}

// runTidy runs a command that, told to end, writes a file and exits with 3. It
// returns when the command is ready for that.
func runTidy(t *testing.T, mark string, left, grace time.Duration) (p *Process, file string) {
	t.Helper()
	return runReady(t, mark, left, grace, `trap 'echo tidied > "$0"; exit 3' TERM; : > "$1"; while :; do sleep 0.02; done`)
}

// runReady runs a script that may write the file $0, and returns when it has written $1.
func runReady(t *testing.T, mark string, left, grace time.Duration, script string) (p *Process, file string) {
	t.Helper()
	dir := t.TempDir()
	file, ready := filepath.Join(dir, "tidied"), filepath.Join(dir, "ready")
	begun := time.Now()
	p = run(t, mark, left, grace, "/bin/sh", "-c", script, file, ready)
	procs.Eventually(t, "the command is ready", func() bool {
		_, err := os.Stat(ready)
		return err == nil || time.Since(begun) > left-grace
	})
	if time.Since(begun) > left-grace {
		procs.TooLate(t, begun, "the command wasn't ready before it was told to end")
	}
	return p, file
}

func TestTheExitStatusIsReported(t *testing.T) {
	tests := []struct {
		name, script string
		want         Status
	}{
		{"exit 0", "exit 0", Status{Code: 0, Reason: Exited}},
		{"exit 7", "exit 7", Status{Code: 7, Reason: Exited}},
		{"exit 255", "exit 255", Status{Code: 255, Reason: Exited}},
		{"by SIGUSR1", "kill -USR1 $$", Status{Code: -1, Signal: syscall.SIGUSR1, Reason: Exited}},
		{"by SIGKILL", "kill -KILL $$", killedBy9.because(Exited)},
		{"after an orphan ended first", "(sleep 0.01 &); sleep 0.1; exit 5", Status{Code: 5, Reason: Exited}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := run(t, newMark(t), time.Hour, time.Second, "/bin/sh", "-c", tt.script)
			wantStatus(t, p, tt.want)
			if err := p.Stop(); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("Stop() after the end = %v, want %v", err, os.ErrProcessDone)
			}
			if got := p.guard.cmd.ProcessState.ExitCode(); got != tt.want.ExitCode() {
				t.Errorf("exit code of the guard = %d, want %d", got, tt.want.ExitCode())
			}
		})
	}
}

func TestACommandThatCanNotRunIsAnError(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(content), mode))
		return path
	}
	plain := write("plain", "#!/bin/sh\n", 0o644)
	later := time.Hour
	tests := []struct {
		name    string
		command Command
		left    time.Duration
		is      error
		text    string
	}{
		{"no such name", Command{Path: "no-such-command-here"}, later, exec.ErrNotFound, `start "no-such-command-here": executable file not found in $PATH`},
		{"no such file", Command{Path: "/no/such/file"}, later, fs.ErrNotExist, `start "/no/such/file": no such file or directory`},
		{"a directory", Command{Path: dir}, later, fs.ErrPermission, "is a directory"},
		{"not executable", Command{Path: plain}, later, fs.ErrPermission, "not executable (try chmod +x)"},
		{"no #! line", Command{Path: write("data", "neither\n", 0o755)}, later, syscall.ENOEXEC, "needs a #! line"},
		{"no interpreter", Command{Path: write("script", "#!/no/such/shell\n", 0o755)}, later, fs.ErrNotExist, "interpreter is missing"},
		{"no such directory", Command{Path: "/bin/sh", Dir: "/no/such/dir"}, later, fs.ErrNotExist, `working directory "/no/such/dir": no such file or directory`},
		{"directory is a file", Command{Path: "/bin/sh", Dir: plain}, later, syscall.ENOTDIR, "not a directory"},
		{"zero byte", Command{Path: "/bin/sh", Args: []string{"a\x00b"}}, later, syscall.EINVAL, "zero byte"},
		{"no command", Command{}, later, nil, "no command given"},
		{"negative grace", Command{Path: "/bin/sh", Grace: -1}, later, nil, "grace -1ns is negative"},
		{"negative notice", Command{Path: "/bin/sh", Grace: 1, Notice: -1}, later, nil, "notice -1ns is not between 0 and the grace 1ns"},
		{"more notice than grace", Command{Path: "/bin/sh", Grace: 1, Notice: 2}, later, nil, "notice 2ns is not between 0 and the grace 1ns"},
		{"deadline past", Command{Path: "/bin/sh"}, -time.Second, ErrTooLate, "too late"},
		{"less than the notice left", Command{Path: "/bin/sh", Grace: time.Hour, Notice: time.Minute}, 30 * time.Second, ErrTooLate, "grace 1m0s: too late"},
		{"less than the grace left", Command{Path: "/bin/sh", Grace: time.Minute}, 30 * time.Second, ErrTooLate, "grace 1m0s: too late"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mark := newMark(t)
			tt.command.Env = marked(mark)
			tt.command.Deadline = Boottime() + tt.left
			p, err := Start(tt.command)
			if err == nil || p != nil {
				t.Fatalf("Start(%+v) = %v, %v, want an error", tt.command.Path, p, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("Start(%q) = %v, want %v", tt.command.Path, err, tt.is)
			}
			if !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Start(%q) = %q, want one line with %q", tt.command.Path, err, tt.text)
			}
			if left := carriers(mark); len(left) > 0 {
				t.Errorf("processes were started: %v", left)
			}
		})
	}
}

func TestTheCommandGetsExactlyWhatItIsGiven(t *testing.T) {
	read, write, err := os.Pipe()
	must(t, err)
	in, err := os.CreateTemp(t.TempDir(), "in")
	must(t, err)
	defer in.Close()
	if _, err := in.WriteString("input\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// Files that the test inherited are passed on, as by any other program.
	inherited, err := exec.Command("/bin/sh", "-c", "ls /proc/$$/fd").Output()
	must(t, err)
	p, err := Start(Command{
		Path: "/bin/sh",
		Args: []string{"-c", `cat; echo "$1|$BYTES"; pwd; tr '\0' '\n' < /proc/$$/environ; ls /proc/$$/fd; echo end`, "sh", "a b"},
		Env:  []string{"BYTES=\xff\xfe"}, Dir: dir, Stdin: in, Stdout: write,
		Deadline: Boottime() + time.Hour,
	})
	must(t, err)
	write.Close()
	// Also proves that nobody holds the pipe when the command is gone.
	out, err := io.ReadAll(read)
	must(t, err)
	wantStatus(t, p, Status{Reason: Exited})
	if got, want := string(out), "input\na b|\xff\xfe\n"+dir+"\nBYTES=\xff\xfe\n"+string(inherited)+"end\n"; got != want {
		t.Errorf("the command wrote %q, want %q", got, want)
	}
}

func TestTheGraceBeforeTheDeadline(t *testing.T) {
	suites.Prove(t, "its deadline is seconds away")
	p, file := runTidy(t, newMark(t), 3*time.Second, 2*time.Second)
	wantStatus(t, p, Status{Code: 3, Reason: DeadlineReached})
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the command didn't see SIGTERM: %v", err)
	}
}

func TestTheGroupHasTheGraceWhenItsLeaderEndsFirst(t *testing.T) {
	p, file := runReady(t, newMark(t), time.Hour, time.Minute,
		`/bin/sh -c 'trap "sleep 0.3; : > \"$0\"; exit" TERM; : > "$1"; while :; do sleep 0.02; done' "$0" "$1" & wait`)
	if err := p.Stop(); err != nil {
		t.Fatalf("Stop() = %v", err)
	}
	wantStatus(t, p, Status{Code: -1, Signal: syscall.SIGTERM, Reason: Stopped})
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the leader's child had no time to tidy up: %v", err)
	}
}

func TestIgnoringSIGTERMEndsWithTheGrace(t *testing.T) {
	for name, c := range map[string]struct {
		grace, lasts time.Duration
		stop         func(p *Process) error
	}{
		"the whole":             {200 * time.Millisecond, 200 * time.Millisecond, (*Process).Stop},
		"an earlier deadline's": {time.Minute, 150 * time.Millisecond, func(p *Process) error { return p.StopBy(Boottime() + 150*time.Millisecond) }},
	} {
		t.Run(name, func(t *testing.T) {
			mark := newMark(t)
			p := runFamily(t, mark, time.Hour, c.grace)
			start := Boottime()
			if err := c.stop(p); err != nil {
				t.Fatalf("Stop() or StopBy() = %v", err)
			}
			wantStatus(t, p, killedBy9.because(Stopped))
			took := Boottime() - start
			procs.Within(t, "from the stop to the end", took, c.lasts+deadlineSlack)
			t.Logf("the guard began to kill %v after the stop, and took %v", p.from-start, p.gone-p.from)
			if took < c.lasts {
				t.Errorf("ended %v after the stop, before the grace was over", took)
			}
			if left := carriers(mark); len(left) > 0 {
				t.Errorf("Wait returned before all were gone: %v", left)
			}
		})
	}
}

func TestExtendMovesTheDeadline(t *testing.T) {
	suites.Prove(t, "its deadline is seconds away")
	mark := newMark(t)
	p := run(t, mark, time.Second, 0, "sleep", "1000")
	old := p.watch.deadline
	if err := p.Extend(old-1, 0); err == nil || errors.Is(err, ErrTooLate) {
		t.Errorf("Extend to an earlier instant = %v, want an error about that", err)
	}
	later := old + 700*time.Millisecond
	if err := p.Extend(later, 0); err != nil {
		t.Fatalf("Extend() = %v", err)
	}
	for Boottime() < old+300*time.Millisecond {
		time.Sleep(10 * time.Millisecond)
	}
	if alive := len(carriers(mark)); alive != 1 && Boottime() < later {
		t.Error("killed at the old deadline")
	}
	wantStatus(t, p, killedBy9.because(DeadlineReached))
	late := p.gone - later // The test may notice the end late.
	procs.Within(t, "from the extended deadline to when nothing ran", late, deadlineSlack)
	t.Logf("the guard began to kill %v after the deadline, and took %v", p.from-later, p.gone-p.from)
	if late < 0 {
		t.Errorf("ended %v before the extended deadline", -late)
	}
}

func TestExtendAfterStopIsTooLate(t *testing.T) {
	p := runFamily(t, newMark(t), time.Hour, time.Minute)
	_ = p.Stop()
	if err := p.Extend(Boottime()+2*time.Hour, 0); !errors.Is(err, ErrTooLate) {
		t.Errorf("Extend after Stop = %v, want %v", err, ErrTooLate)
	}
	_ = p.Kill()
	wantStatus(t, p, killedBy9.because(Killed))
}

func TestNothingLeaks(t *testing.T) {
	count := func() (fds, goroutines, zombies int) {
		names, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		for _, pid := range children(os.Getpid()) {
			if s, ok := stat(pid); ok && s.dead() {
				zombies++
			}
		}
		return len(names), runtime.NumGoroutine(), zombies
	}
	once := func() {
		p := run(t, newMark(t), time.Hour, 0, "true")
		wantStatus(t, p, Status{Reason: Exited})
		if _, err := Start(Command{Path: "/no/such/file", Deadline: Boottime() + time.Hour}); err == nil {
			t.Error("Start of a missing file succeeded")
		}
	}
	once()
	// Where another test made this process a subreaper, what that test's helpers left is ours.
	fds, goroutines, others := count()
	for range 50 {
		once()
	}
	// What measures the machine has a file open now and then.
	procs.Eventually(t, "files are closed, and goroutines and zombies end", func() bool {
		n, routines, zombies := count()
		return n <= fds && routines <= goroutines && zombies <= others
	})
}
