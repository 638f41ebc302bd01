package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
)

// childrenOf are the children of a process, dead ones too.
func childrenOf(t *testing.T, pid int) (found []int) {
	t.Helper()
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, name := range lists {
		b, _ := os.ReadFile(name)
		for field := range strings.FieldsSeq(string(b)) {
			child, err := strconv.Atoi(field)
			must(t, err)
			found = append(found, child)
		}
	}
	return found
}

// In a container leasectl is often process 1: what others leave there, as those that docker exec
// starts, becomes its child.
func TestAsProcess1ItPassesSignalsOnAndReapsTheOrphansOfOthers(t *testing.T) {
	t.Parallel()
	under := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if out, err := exec.Command(under[0], append(under[1:], "true")...).CombinedOutput(); err != nil {
		unavailable(t, "no process can be process 1: "+string(out)+err.Error())
	}
	_, storeArg := newLedger(t)
	p := startUnder(t, under, "run", "--store", storeArg, "--worker-type", "t", "--instance-id", "a", "--every", "1h", "--failover-within", "20m", "--", "sh", "-c", `trap "echo heard" USR1; echo listens; while :; do sleep 0.05; done`)
	p.await("listens")
	leasectl := childrenOf(t, p.cmd.Process.Pid)
	if len(leasectl) != 1 {
		t.Fatalf("unshare has the children %v, want one", leasectl)
	}
	must(t, syscall.Kill(leasectl[0], syscall.SIGUSR1))
	p.await("heard")
	// 20 that end when they may, and one that stays, in the container, and their parent is gone.
	const leave = `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do setsid sh -c 'while [ -e "$0" ]; do sleep 0.05; done' "$0" & done; setsid sleep 1000 &`
	may := filepath.Join(t.TempDir(), "wait")
	must(t, os.WriteFile(may, nil, 0o600))
	enter := exec.Command("nsenter", "--target", strconv.Itoa(leasectl[0]), "--pid", "--mount", "--", "sh", "-c", leave, may)
	if err := enter.Run(); err != nil { // Its output would have to end: what stays has it open.
		t.Fatalf("nsenter: %v", err)
	}
	procs.Eventually(t, "the orphans of others are its children", func() bool { return len(childrenOf(t, leasectl[0])) == 22 })
	must(t, os.Remove(may))
	procs.Eventually(t, "all that ended are reaped", func() bool {
		return len(childrenOf(t, leasectl[0])) == 2 // the guard, and the one that stays
	})
	must(t, syscall.Kill(leasectl[0], syscall.SIGTERM))
	p.exits(exit.OK)
}

// What can't be guarded isn't begun: the slot is left to others.
func TestAProcess1WithAForeignProcClaimsNothing(t *testing.T) {
	t.Parallel()
	under := []string{"unshare", "--pid", "--fork", "--kill-child"}
	if out, err := exec.Command(under[0], append(under[1:], "true")...).CombinedOutput(); err != nil {
		unavailable(t, "no process can be process 1: "+string(out)+err.Error())
	}
	l, storeArg := newLedger(t)
	p := startUnder(t, under, "run", "--once", "--store", storeArg, "--worker-type", "t", "--instance-id", "a", "--every", "1h", "--failover-within", "20m", "--", "true")
	if code := p.wait(); code != exit.Command || !strings.Contains(p.output(), "mount a /proc of the own PID namespace") {
		t.Errorf("leasectl run = %d, %q, want %d, and the remedy", code, p.output(), exit.Command)
	}
	if all := records(t, l); len(all) > 0 {
		t.Errorf("the ledger has %+v, want nothing", all)
	}
}
