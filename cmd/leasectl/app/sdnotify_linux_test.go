package app

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
)

// notified is what a service manager was told.
type notified struct {
	mu   sync.Mutex
	told []string
}

// all is what was told so far.
func (n *notified) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.told)
}

// await waits until it is told something that begins with a text.
func (n *notified) await(t *testing.T, text string) {
	t.Helper()
	procs.Eventually(t, "the service manager is told "+text, func() bool {
		return slices.ContainsFunc(n.all(), func(line string) bool { return strings.HasPrefix(line, text) })
	})
}

// serviceManager listens as a service manager does, and returns how to run a program as its service.
func serviceManager(t *testing.T) (n *notified, under []string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	n = &notified{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the service manager was told %q", n.all())
		}
	})
	go func() {
		for b := make([]byte, 4096); ; {
			size, err := c.Read(b)
			if err != nil {
				return
			}
			n.mu.Lock()
			n.told = append(n.told, strings.Split(string(b[:size]), "\n")...)
			n.mu.Unlock()
		}
	}()
	return n, []string{"env", "NOTIFY_SOCKET=" + name, "WATCHDOG_USEC=400000"}
}

func TestRunTellsSystemdWhatItDoes(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	args := func(name string) []string {
		return []string{
			"run", "--store", storeArg, "--worker-type", "t", "--instance-id", name, "--every", oneSlot, "--failover-within", "1h", "--",
			"sh", "-c", `echo "socket: $NOTIFY_SOCKET, $WATCHDOG_USEC."; exec sleep 1000`,
		}
	}
	a, underA := serviceManager(t)
	first := startUnder(t, underA, args("a")...)
	first.await("socket: , .\n")
	a.await(t, "STATUS=holds slot ")
	b, underB := serviceManager(t)
	second := startUnder(t, underB, args("b")...)
	b.await(t, `STATUS=standby, held by "a" until `)
	for _, n := range []*notified{a, b} {
		n.await(t, "WATCHDOG=1")
		if all := n.all(); slices.Index(all, "READY=1") < 0 || slices.Contains(all, "STOPPING=1") {
			t.Errorf("the service manager was told %q, want READY=1", all)
		}
	}
	first.signal(syscall.SIGSTOP)
	time.Sleep(300 * time.Millisecond)
	before := len(a.all())
	time.Sleep(time.Second)
	if all := a.all(); len(all) != before {
		t.Errorf("one that is stopped told the service manager %q", all[before:])
	}
	first.signal(syscall.SIGCONT)
	ends(t, first, second)
	for _, n := range []*notified{a, b} {
		if all := n.all(); slices.Index(all, "STOPPING=1") < slices.Index(all, "READY=1") {
			t.Errorf("the service manager was told %q, want STOPPING=1 at the end", all)
		}
	}
}
