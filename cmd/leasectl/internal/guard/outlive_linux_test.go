package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/suites"
)

// escape is the program of testdata/escape.c, and its copy that is set-user-ID root.
type escape struct{ dir, program, rooted, self string }

// buildEscape builds it where every user can execute it.
func buildEscape(t *testing.T) escape {
	t.Helper()
	suites.Prove(t, "it makes worlds for processes, whose deadlines are seconds away")
	if os.Getuid() != 0 {
		unavailable(t, "not root, so that no other user's processes, mounts and cgroups can be made")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		unavailable(t, err.Error())
	}
	// To mount /proc may be forbidden even to root.
	try := exec.Command("true")
	try.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if err := try.Run(); err != nil {
		unavailable(t, "no mount namespace: "+err.Error())
	}
	self := copyForAll(t, 0o755)
	dir := filepath.Dir(self)
	e := escape{dir, filepath.Join(dir, "escape"), filepath.Join(dir, "rooted"), self}
	source, err := os.Open("testdata/escape.c") // by this process, so that a new one makes a cached result void
	must(t, err)
	gcc := exec.Command("gcc", "-pthread", "-o", e.program, "-x", "c", "-")
	gcc.Stdin = source
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	_ = source.Close()
	binary, err := os.ReadFile(e.program)
	if err == nil {
		err = errors.Join(writeProgram(e.rooted, binary), os.Chmod(e.program, 0o755), os.Chmod(e.rooted, 0o755|os.ModeSetuid))
	}
	must(t, err)
	return e
}

// lines is how many processes of each kind there are.
var lines = map[string]int{"thread": 1, "threads": 1, "hidden": 3, "sibling": 1, "root": 1, "restart": 1, "relay": 1}

// escaping is an escape that runs.
type escaping struct {
	*parent

	program string
	lock    *os.File
}

// run starts the program in a world, and returns when all its processes are there.
func (e escape) run(t *testing.T, w world, left time.Duration, kinds ...string) escaping {
	t.Helper()
	lock, err := os.CreateTemp(e.dir, "lock")
	if err == nil {
		err = lock.Chmod(0o666)
	}
	must(t, err)
	t.Cleanup(func() {
		for _, pid := range alive(lock.Name()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = lock.Close()
	})
	begun, program := time.Now(), e.program
	if slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains([]string{"root", "restart", "relay"}, kind) }) {
		program = e.rooted
	}
	r := escaping{w.start(t, e.self, left.String(), append([]string{program, lock.Name()}, kinds...)...), program, lock}
	want := 0
	for _, kind := range kinds {
		want += lines[kind]
	}
	late := false
	procs.Eventually(t, "all have escaped", func() bool {
		// In this order: what has escaped before the deadline is not late.
		late = Boottime() >= r.deadline
		return len(procs.Lines(lock.Name())) == want || late
	})
	if late {
		procs.TooLate(t, begun, fmt.Sprintf("%d have escaped before the deadline, want %d", len(procs.Lines(lock.Name())), want))
	}
	return r
}

// gone reports whether every process has run its last instruction: a lock that one
// holds keeps others from it.
func (r escaping) gone(t *testing.T) bool {
	t.Helper()
	switch err := syscall.Flock(int(r.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false
	case err != nil:
		t.Fatal(err)
	}
	return true
}

// alive are those processes that have noted themselves in a file, and still have it open.
func alive(path string) (pids []int) {
	for _, line := range procs.Lines(path) {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err != nil {
			continue
		}
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/fd/*", pid))
		for _, fd := range fds {
			if file, err := os.Readlink(fd); err == nil && file == path {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// says returns what the parent says of the end, which must come.
func (r escaping) says(t *testing.T) string {
	t.Helper()
	defer context.AfterFunc(suites.Deadline(t), func() { _ = r.cmd.Process.Kill() })()
	if !r.out.Scan() {
		t.Fatalf("the parent said nothing of the end; alive: %v of\n%s", alive(r.lock.Name()), strings.Join(procs.Lines(r.lock.Name()), "\n"))
	}
	return r.out.Text()
}

// worlds are all, for a program that gets the orphans of its guards.
func worlds() (all []world) {
	for _, uid := range []int{0, nobody} {
		for _, hidden := range []bool{false, true} {
			for _, cgroups := range []bool{false, true} {
				all = append(all, world{uid: uid, hidden: hidden, cgroups: cgroups, subreaper: true})
			}
		}
	}
	return all
}

const timeToEscape = 3 * time.Second

// nobody is a user that may have processes elsewhere, and no limit on them.
const nobody = 65534

func TestNothingEscapesTheDeadlineInAnyWorld(t *testing.T) {
	t.Parallel()
	e := buildEscape(t)
	for _, w := range worlds() {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			e.outlives(t, w)
		})
	}
}

// outlives lets processes try to escape in a world: none may run longer after the deadline than it should.
func (e escape) outlives(t *testing.T, w world) {
	t.Helper()
	begun := time.Now()
	r := e.run(t, w, timeToEscape, "thread", "hidden", "sibling")
	// All were there, and a look that is over before the deadline shows that they run. One that isn't shows nothing.
	if r.gone(t) {
		if Boottime() < r.deadline {
			t.Fatal("nothing runs before the deadline")
		}
		procs.TooLate(t, begun, "nothing was seen to run before the deadline")
	}
	said := r.says(t)
	if !r.gone(t) {
		t.Errorf("the parent says %q, and something runs", said)
	}
	if want := killedBy9.because(DeadlineReached).String() + "; <nil>"; said != want {
		t.Errorf("the parent says %q, want %q", said, want)
	}
	procs.Within(t, "from the deadline to when nothing ran", Boottime()-r.deadline, deadlineSlack)
}

// A process of root can be killed by root, or with its cgroup. A guard that can do neither reports
// that it runs on, also where /proc hides it.
func TestWhatCanNotBeKilledIsNeverReportedGone(t *testing.T) {
	t.Parallel()
	e := buildEscape(t)
	for _, w := range worlds() {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			r := e.run(t, w, timeToEscape, "root")
			said := r.says(t)
			survives := w.uid != 0 && !w.cgroups
			if strings.Contains(said, ErrSurvivors.Error()) != survives || r.gone(t) == survives {
				t.Errorf("the parent says %q, and it's %v that nothing runs; want a survivor: %v", said, r.gone(t), survives)
			}
		})
	}
}

// A supervisor that can't be killed, and starts what can be again and again, keeps neither the guard
// nor the program looking for it for ever.
func TestASupervisorOfRootIsReportedInBoundedTime(t *testing.T) {
	t.Parallel()
	e := buildEscape(t)
	for _, test := range []struct {
		kind              string
		hidden, guardDies bool
		limit             time.Duration
	}{
		{"restart", false, false, refusedFor},
		{"restart", false, true, refusedFor},
		{"restart", true, false, refusedFor},
		{"restart", true, true, refusedFor},
		{"relay", true, false, lookFor},
		{"relay", false, true, lookFor},
	} {
		w := world{uid: nobody, hidden: test.hidden, subreaper: true}
		t.Run(fmt.Sprintf("%s, %v, the guard dies: %v", test.kind, w, test.guardDies), func(t *testing.T) {
			t.Parallel()
			left := timeToEscape
			if test.guardDies {
				left = time.Hour
			}
			r := e.run(t, w, left, test.kind)
			if test.guardDies {
				r.deadline = Boottime()
				signalTo(t, r.guard, syscall.SIGKILL)
			}
			said := r.says(t)
			procs.Within(t, "from the end to the report of survivors", Boottime()-r.deadline, test.limit+2*time.Second)
			if !strings.Contains(said, ErrSurvivors.Error()) || r.gone(t) {
				t.Errorf("the parent says %q, and it's %v that nothing runs; want survivors", said, r.gone(t))
			}
		})
	}
}

func TestAProgramFindsWhatItsDeadGuardLeftInAnyWorld(t *testing.T) {
	t.Parallel()
	e := buildEscape(t)
	for _, w := range worlds() {
		for _, kinds := range [][]string{{"thread", "hidden", "sibling"}, {"root"}} {
			t.Run(w.String()+", "+kinds[0], func(t *testing.T) {
				t.Parallel()
				r := e.run(t, w, time.Hour, kinds...)
				signalTo(t, r.guard, syscall.SIGKILL)
				said := r.says(t)
				survives := w.uid != 0 && !w.cgroups && kinds[0] == "root"
				if strings.Contains(said, ErrSurvivors.Error()) != survives || r.gone(t) == survives || !strings.Contains(said, ErrGuardDied.Error()) {
					t.Errorf("the parent says %q, and it's %v that nothing runs; want a survivor: %v", said, r.gone(t), survives)
				}
			})
		}
	}
}

// Where /proc hides processes, the program isn't their subreaper, and there is no cgroup,
// nothing proves that they are gone when the guard is dead.
func TestWithoutProofNothingIsReportedGone(t *testing.T) {
	t.Parallel()
	e := buildEscape(t)
	r := e.run(t, world{uid: nobody, hidden: true}, time.Hour, "hidden")
	signalTo(t, r.guard, syscall.SIGKILL)
	if said := r.says(t); !strings.Contains(said, ErrSurvivors.Error()) {
		t.Errorf("the parent says %q, want %q", said, ErrSurvivors)
	}
}
