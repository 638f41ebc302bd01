package app

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
)

// nobody is a user without rights.
const nobody = 65534

// unavailable skips a test for the lack of something, or fails it if REQUIRE_ESCAPES=1.
func unavailable(t *testing.T, lack string) {
	t.Helper()
	if os.Getenv("REQUIRE_ESCAPES") == "1" {
		t.Fatalf("REQUIRE_ESCAPES=1, but %s", lack)
	}
	t.Skip(lack)
}

// unkillable builds testdata/rooted.c where nobody can execute it, next to a copy of
// leasectl, and returns both.
func unkillable(t *testing.T) (rooted, self string) {
	t.Helper()
	if os.Getuid() != 0 {
		unavailable(t, "not root, so that no command can be set-user-ID root")
	}
	source, err := os.ReadFile("testdata/rooted.c")
	must(t, err)
	binary, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	// Another user must be able to look into it, and tests have their own on a tmpfs, which may be
	// without set-user-ID programs.
	dir, err := os.MkdirTemp("/tmp", "survivors") //nolint:usetesting // See above.
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	rooted, self = filepath.Join(dir, "rooted"), filepath.Join(dir, "leasectl.test")
	gcc := exec.Command("gcc", "-o", rooted, "-x", "c", "-")
	gcc.Stdin = strings.NewReader(string(source))
	switch out, err := gcc.CombinedOutput(); {
	case errors.Is(err, exec.ErrNotFound):
		unavailable(t, err.Error())
	case err != nil:
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	// A file that a process which starts meanwhile had open for writing couldn't be executed.
	syscall.ForkLock.RLock()
	err = os.WriteFile(self, binary, 0o755)
	syscall.ForkLock.RUnlock()
	must(t, errors.Join(err, os.Chmod(dir, 0o777), os.Chmod(self, 0o755), os.Chmod(rooted, 0o755|os.ModeSetuid)))
	return rooted, self
}

// While processes may work that can't be killed, nothing is given back, done or begun.
func TestALeaseIsKeptForWhatCanNotBeKilled(t *testing.T) {
	t.Parallel()
	rooted, self := unkillable(t)
	const begin = `"$0" "$1" & until [ -s "$1" ]; do sleep 0.01; done; echo started; `
	for name, test := range map[string]struct {
		flags  []string
		script string
		stop   bool // by SIGTERM; otherwise by the command's own end, or that of the lease
	}{
		"the command has ended":          {[]string{"--every", "1h", "--failover-within", "20m"}, begin + `exit 0`, false},
		"the job has ended":              {[]string{"--every", "1h", "--once-per-slot", "--start-within", "1h"}, begin + `exit 0`, false},
		"the job has failed":             {[]string{"--every", "1h", "--once-per-slot", "--start-within", "1h"}, begin + `exit 1`, false},
		"the next slot is won":           {[]string{"--every", "3s", "--continuous"}, begin + `sleep 2; exit 0`, false},
		"the lease has ended":            {[]string{"--every", "2s"}, begin + `sleep 1000`, false},
		"it starts others again":         {[]string{"--every", "1h", "--failover-within", "20m"}, `"$0" restart "$1" & until [ -s "$1" ]; do sleep 0.01; done; echo started; exit 0`, false},
		"once":                           {[]string{"--every", oneSlot, "--once"}, begin + `exit 0`, false},
		"once, the job has ended":        {[]string{"--every", oneSlot, "--once", "--once-per-slot"}, begin + `exit 0`, false},
		"leasectl is told to end":        {[]string{"--every", "1h", "--failover-within", "20m"}, begin + `sleep 1000`, true},
		"leasectl is told to end, a job": {[]string{"--every", "1h", "--once-per-slot", "--start-within", "1h"}, begin + `trap 'exit 0' TERM; sleep 1000 & wait`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			path := strings.TrimPrefix(storeArg, "sqlite:")
			open, err := filepath.Glob(path + "*") // with its log
			for _, name := range append(open, filepath.Dir(path)) {
				err = errors.Join(err, os.Chmod(name, 0o777))
			}
			// What is above it must be passed, up to a folder that anybody may pass.
			for dir := filepath.Dir(filepath.Dir(path)); err == nil; dir = filepath.Dir(dir) {
				var info os.FileInfo
				if info, err = os.Stat(dir); err != nil || info.Mode().Perm()&1 != 0 {
					break
				}
				err = os.Chmod(dir, info.Mode().Perm()|1)
			}
			must(t, err)
			notes := filepath.Join(t.TempDir(), "notes")
			must(t, errors.Join(os.WriteFile(notes, nil, 0o666), os.Chmod(notes, 0o666)))
			t.Cleanup(func() {
				for _, line := range procs.Lines(notes) {
					if pid, err := strconv.Atoi(line); err == nil {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				}
			})
			args := append(append([]string{"run", "--store", storeArg, "--worker-type", "t", "--instance-id", "a"}, test.flags...), "--", "sh", "-c", test.script, rooted, notes)
			p := startUnder(t, []string{"setpriv", "--reuid", strconv.Itoa(nobody), "--regid", strconv.Itoa(nobody), "--clear-groups", "--", "sh", "-c", `shift; exec "$0" "$@"`, self}, args...)
			p.await("started")
			procs.Eventually(t, "what can't be killed works", func() bool { return len(procs.Lines(notes)) == 1 })
			if test.stop {
				p.signal(syscall.SIGTERM)
			}
			select {
			case <-p.done:
			case <-suites.Deadline(t).Done():
				t.Fatal("leasectl doesn't end")
			}
			if code := p.cmd.ProcessState.ExitCode(); code != exit.Survivors {
				t.Errorf("exit code %d, want %d", code, exit.Survivors)
			}
			for _, want := range []string{guard.ErrSurvivors.Error(), "the lease is not released", "try: end these processes"} {
				p.await(want) // What survives has the output open, so that it doesn't end.
			}
			all := records(t, l)
			for _, r := range all {
				// Another slot that was won is given back before it begins, as always.
				if r.Token == all[0].Token && r.Kind == store.KindRelease || r.Kind == store.KindDone || r.DoneUntil.After(r.SlotStart) {
					t.Errorf("the ledger has %+v, want that the lease isn't released, and nothing done", r)
				}
			}
			if n := strings.Count(p.output(), "command started"); n != 1 || len(procs.Lines(notes)) != 1 {
				t.Errorf("the command was started %d times, and works %d times, want once", n, len(procs.Lines(notes)))
			}
		})
	}
}
