package guard

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
)

// A debugger that isn't a descendant, and does nothing, keeps what has ended from being reaped.
func TestADebuggerThatKeepsTheDeadDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	e := buildEscape(t)
	for _, cgroups := range []bool{false, true} {
		for _, guardDies := range []bool{false, true} {
			for _, kinds := range [][]string{{"hidden"}, {"thread"}, {"threads"}, nil} {
				w := world{cgroups: cgroups, subreaper: true}
				t.Run(fmt.Sprintf("%v, %v, the guard dies: %v", kinds, w, guardDies), func(t *testing.T) {
					t.Parallel()
					left := timeToEscape
					if guardDies {
						left = time.Hour
					}
					r := e.run(t, w, left, kinds...)
					traced := r.trace(t, kinds)
					if guardDies {
						r.deadline = Boottime()
						signalTo(t, r.guard, syscall.SIGKILL)
					}
					said := r.says(t)
					procs.Within(t, "from the end to the report of it", Boottime()-r.deadline, deadFor+2*time.Second)
					if !r.gone(t) || strings.Contains(said, ErrSurvivors.Error()) {
						t.Errorf("the parent says %q, and it's %v that nothing runs; want no survivors", said, r.gone(t))
					}
					for _, pid := range traced {
						if p, ok := stat(pid); !ok || !p.dead() {
							t.Errorf("stat(%d) = %+v, %v: want that the debugger keeps it dead", pid, p, ok)
						}
					}
				})
			}
		}
	}
}

// trace has the processes of an escape debugged by another process, and returns them.
func (r escaping) trace(t *testing.T, kinds []string) (pids []int) {
	t.Helper()
	pids = []int{r.command}
	if len(kinds) > 0 {
		pids = nil
		for _, line := range procs.Lines(r.lock.Name()) {
			var pid int
			if _, err := fmt.Sscan(line, &pid); err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	tracer := exec.Command(r.program, append([]string{"trace"}, strings.Fields(strings.Trim(fmt.Sprint(pids), "[]"))...)...)
	tracer.Stderr = os.Stderr
	out, err := tracer.StdoutPipe()
	if err == nil {
		err = tracer.Start()
	}
	must(t, err)
	t.Cleanup(func() {
		_ = tracer.Process.Kill()
		_ = tracer.Wait()
	})
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil || said != "traces\n" {
		t.Fatalf("the debugger says %q, %v", said, err)
	}
	return pids
}
