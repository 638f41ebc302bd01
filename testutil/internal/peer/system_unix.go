//go:build unix

package peer

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Lock waits for the exclusive lock on a file and returns what gives it back.
func Lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		}
	}
}

// isolate puts the peer in its own process group. If the test binary dies while the
// peer is paused, that group is orphaned, and the kernel sends SIGHUP and SIGCONT to
// its stopped members. So not even a paused peer stays. (Checked on Linux.)
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// CanPause says whether a process can be stopped and continued.
const CanPause = true

func pause(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStop(p.Pid)
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
