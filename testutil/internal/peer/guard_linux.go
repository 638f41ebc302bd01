package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// canGuard says whether a Program can be run.
const canGuard = true

// A test binary that imports this package becomes a guard here if it is told so, before it
// runs any test. The system ends the guard's children with the thread that started them, and this
// is the main thread.
func init() {
	told, ok := os.LookupEnv(guardVariable)
	if !ok {
		return
	}
	if err := guard(told); err != nil {
		fmt.Fprintln(os.Stderr, "the guard of a test peer:", err)
		syscall.Exit(1)
	}
	syscall.Exit(0) // unlike os.Exit, at once, even with the race detector
}

// errOrphaned reports the end of the guard's standard input.
var errOrphaned = errors.New("the test binary is gone")

// guard runs a server until it ends, or until the end of the standard input. Then it removes the
// server's data, too.
func guard(told string) error {
	var o order
	if err := json.Unmarshal([]byte(told), &o); err != nil {
		return err
	}
	// Whichever of the server's processes loses its parent becomes a child of the guard.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	orphaned := make(chan struct{})
	go func() {
		defer close(orphaned)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	err := o.run(orphaned)
	killBelow(os.Getpid())
	if errors.Is(err, errOrphaned) {
		return os.RemoveAll(o.Data)
	}
	return err
}

// run prepares the data and runs the server.
func (o order) run(orphaned <-chan struct{}) error {
	attributes, err := o.attributes()
	if err != nil {
		return err
	}
	made, err := os.ReadDir(o.Data)
	if err != nil {
		return err
	}
	var commands [][]string
	if len(made) == 0 {
		commands = o.Prepare
	}
	for _, args := range commands {
		if err := o.command(args, attributes, 0, orphaned); err != nil {
			return err
		}
	}
	return o.command(o.Serve, attributes, o.Stop, orphaned)
}

// command runs one to its end, or to that of the standard input.
func (o order) command(args []string, attributes *syscall.SysProcAttr, stop syscall.Signal, orphaned <-chan struct{}) error {
	c := exec.Command(args[0], args[1:]...) //nolint:gosec // The test binary names it.
	c.Dir, c.SysProcAttr = o.Data, attributes
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + o.Data, "LC_ALL=C"}
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		return err
	}
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed = c.Wait()
	}()
	select {
	case <-ended:
		if failed != nil {
			return fmt.Errorf("%q: %w", args, failed)
		}
		return nil
	case <-orphaned:
	}
	if stop != 0 {
		for _, p := range below(os.Getpid()) {
			_ = syscall.Kill(p.pid, syscall.SIGCONT) // It may be paused.
		}
		_ = c.Process.Signal(stop)
		select {
		case <-ended:
		case <-time.After(stopTime):
		}
	}
	return errOrphaned
}

// attributes are how to start a command: as nobody, if need be, who is given the folder of the
// data. Commands have a process group of their own, so that the guard isn't hung up when it is
// orphaned while they are stopped.
func (o order) attributes() (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if !o.Unprivileged || os.Getuid() != 0 {
		return a, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return a, os.Chown(o.Data, int(uid), int(gid))
}
