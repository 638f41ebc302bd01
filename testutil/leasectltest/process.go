package leasectltest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

// asLeasectl in the environment makes the test binary leasectl.
const asLeasectl = "LEASECTL_TEST_MAIN"

// Main runs the tests, or the program's main if the test binary was started as leasectl, by [Run] or by leasectl itself as
// the guard of a command. TestMain calls it.
func Main(m *testing.M, main func()) {
	if os.Getenv(asLeasectl) != "" || isGuard(os.Args) {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// isGuard reports whether arguments are those of the guard of a command, which has no variables of this package: it goes by
// another name than the program, and has no further arguments. A test binary that somebody starts without any runs its tests.
func isGuard(args []string) bool {
	self, err := os.Executable()
	return err == nil && len(args) == 1 && filepath.Base(args[0]) != filepath.Base(self)
}

// Output is what leasectl did.
type Output struct {
	Code           int
	Stdout, Stderr string
}

// Leasectl runs leasectl with variables in its environment, without a store unless they name one, until it ends.
func Leasectl(t testing.TB, env []string, args ...string) Output {
	t.Helper()
	c := command(suites.Deadline(t), t, env, args)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if c.ProcessState == nil {
		t.Fatalf("leasectl %q: %v", args, err)
	}
	return Output{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func command(ctx context.Context, t testing.TB, env, args []string) *exec.Cmd {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("leasectl guards no commands here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, self, args...)
	c.Env = append([]string{asLeasectl + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}, env...)
	c.WaitDelay = time.Second
	return c
}

// Process is a leasectl that goes on.
type Process struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out bytes.Buffer // of both streams
}

// Start starts leasectl, which ends with the test.
func Start(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: command(context.WithoutCancel(t.Context()), t, env, args), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // Its guard ends the command.
		<-p.done
		if t.Failed() {
			t.Logf("output of leasectl %q:\n%s", args, p.Output())
		}
	})
	return p
}

// Write takes the output.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// Output is what it has written so far, to both streams.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// Began reports whether a command began.
func (p *Process) Began() bool { return strings.Contains(p.Output(), "command started") }

// End lets it end by SIGTERM, and wants the exit code 0.
func (p *Process) End() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Error(err)
	}
	suites.Eventually(p.t, "the end of leasectl", func() bool {
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	})
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("leasectl %q ended with code %d, want 0", p.cmd.Args[1:], code)
	}
}
