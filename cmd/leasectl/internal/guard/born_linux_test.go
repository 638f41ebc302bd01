package guard

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

// A guard that isn't listed yet would be taken for an orphan by a rescue, which holds the lock.
func TestNoGuardIsBornWhileARescueLooks(t *testing.T) {
	guards.Lock()
	unlock := func() { guards.Unlock() }
	defer func() { unlock() }()
	started := make(chan error, 1)
	go func() {
		p, err := Start(Command{Path: "true", Deadline: Boottime() + time.Hour})
		if err == nil {
			_, err = p.Wait()
		}
		started <- err
	}()
	suites.Eventually(t, "the start waits for the lock", func() bool {
		b := make([]byte, 1<<20)
		for _, g := range bytes.Split(b[:runtime.Stack(b, true)], []byte("\n\n")) {
			if bytes.Contains(g, []byte("guard.startGuard(")) && bytes.Contains(g, []byte("sync.(*Mutex).Lock(")) {
				return true
			}
		}
		return false
	})
	for _, pid := range children(os.Getpid()) {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.HasPrefix(name, []byte(marker+"\x00")) && !guards.alive[pid] {
			t.Errorf("guard %d is alive, and isn't listed", pid)
		}
	}
	guards.Unlock()
	unlock = func() {}
	if err := <-started; err != nil {
		t.Error(err)
	}
}
