//go:build unix && !aix

package guard

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
)

// guards are the living guards of this process, by number. The lock is held
// while one is started, so that none is alive and not in the set.
var guards = struct {
	sync.Mutex
	alive map[int]bool
}{alive: map[int]bool{}}

// guardProcess is the guard as its parent sees it.
type guardProcess struct {
	cmd *exec.Cmd
	// said is the beginning of its standard error: nothing,
	// unless the runtime crashed.
	said prefix
}

// startGuard starts a guard that waits for its first order.
func startGuard(stdin, stdout, stderr *os.File) (g *guardProcess, orders, reports *os.File, err error) {
	var opened []*os.File
	defer func() {
		for _, f := range opened {
			_ = f.Close()
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	opened = append(opened, null)
	if stdin == nil || term.IsTerminal(int(stdin.Fd())) {
		stdin = null
	}
	ordersRead, orders, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("open pipe to the guard: %w", err)
	}
	opened = append(opened, ordersRead)
	reports, reportsWrite, err := os.Pipe()
	if err != nil {
		_ = orders.Close()
		return nil, nil, nil, fmt.Errorf("open pipe from the guard: %w", err)
	}
	opened = append(opened, reportsWrite)
	g = &guardProcess{}
	g.cmd = &exec.Cmd{
		Args:        []string{marker},
		Env:         guardEnv(),
		ExtraFiles:  []*os.File{ordersRead, reportsWrite, stdin, cmp.Or(stdout, null), cmp.Or(stderr, null)},
		Stderr:      &g.said,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		WaitDelay:   time.Second,
	}
	if g.cmd.Path, err = self(); err == nil {
		guards.Lock()
		if err = g.cmd.Start(); err == nil {
			guards.alive[g.pid()] = true
		}
		guards.Unlock()
	}
	if err != nil {
		_ = orders.Close()
		_ = reports.Close()
		return nil, nil, nil, errors.New("start guard: " + err.Error()) // Not wrapped: it isn't about the command.
	}
	return g, orders, reports, nil
}

// self returns a path of this program. On Linux it works also after an upgrade
// has replaced or deleted the file.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// guardEnv is the environment of the guard itself: nothing of the program's,
// which may hold secrets, but what the Go runtime reads.
func guardEnv() []string {
	env := []string{}
	for _, name := range []string{"GODEBUG", "GOCOVERDIR", "GORACE"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func (g *guardProcess) pid() int { return g.cmd.Process.Pid }
func (g *guardProcess) kill()    { _ = g.cmd.Process.Kill() }
func (g *guardProcess) resume()  { _ = g.cmd.Process.Signal(syscall.SIGCONT) }

// reap collects the guard's exit status and returns a line about its end.
func (g *guardProcess) reap() string {
	_ = g.cmd.Wait()
	guards.Lock()
	delete(guards.alive, g.pid())
	guards.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(string(g.said)), "\n")
	if line == "" {
		return g.cmd.ProcessState.String()
	}
	return g.cmd.ProcessState.String() + ": " + line
}

// prefix keeps the first bytes that are written to it.
type prefix []byte

func (p *prefix) Write(b []byte) (int, error) {
	const limit = 4096
	*p = append(*p, b[:min(len(b), limit-len(*p))]...)
	return len(b), nil
}
