package guard

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/suites"
)

// stranger is a user that has no processes.
const stranger = 54321

// copyForAll copies the test binary to where every user can execute it.
func copyForAll(t *testing.T, mode os.FileMode) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to start processes of another user")
	}
	binary, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	dir, err := os.MkdirTemp("", "guard") //nolint:usetesting // Another user must be able to look into it.
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "guard.test")
	err = writeProgram(path, binary)
	// Neither the umask nor who wrote the file may change these.
	must(t, errors.Join(err, os.Chmod(dir, 0o755), os.Chmod(path, mode)))
	return path
}

// writeProgram writes a file that is to be executed: no process that starts meanwhile
// inherits it, since one that is open for writing can't be.
func writeProgram(path string, binary []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, binary, 0o755)
}

func TestExhaustingTheProcessLimitDoesNotStopTheGuard(t *testing.T) {
	suites.Prove(t, "its deadline is seconds away")
	self := copyForAll(t, 0o755)
	mark := newMark(t)
	p := startParentAs(t, self, stranger, mark, 4*time.Second, 0, self, helperArg, "bomb")
	procs.Eventually(t, "the limit is reached", func() bool { return len(carriers(mark)) >= 50 })
	time.Sleep(200 * time.Millisecond)
	if s, ok := stat(p.guard); (!ok || s.dead()) && Boottime() < p.deadline { // A busy machine reaches the limit later.
		t.Fatalf("stat(guard) = %+v, %v, want it alive at the limit", s, ok)
	}
	if late := wantGone(t, mark, "the deadline", p.deadline, time.Second); late < 0 {
		t.Errorf("killed %v before the deadline: the guard or the parent died", -late)
	}
}

// limitProcesses lets this user have few processes and threads. The guard
// inherits that.
func limitProcesses() error {
	const limit = 200
	const rlimitNProc = 6
	return syscall.Setrlimit(rlimitNProc, &syscall.Rlimit{Cur: limit, Max: limit})
}
