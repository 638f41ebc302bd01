package guard

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/internal/suites"
)

// world is what a program finds around it.
type world struct {
	// uid is the user.
	uid int
	// hidden is set where /proc hides processes from users, cgroups where the program may
	// make cgroups, and subreaper where it gets the orphans of its guards.
	hidden, cgroups, subreaper bool
}

func (w world) String() string {
	user, proc, groups := "root", "all of /proc", "no cgroups"
	if w.uid != 0 {
		user = "a user"
	}
	if w.hidden {
		proc = "/proc hidden"
	}
	if w.cgroups {
		groups = "cgroups"
	}
	return user + ", " + proc + ", " + groups
}

// unavailable skips a test for the lack of something, or fails it if REQUIRE_ESCAPES=1.
func unavailable(t *testing.T, lack string) {
	t.Helper()
	if os.Getenv("REQUIRE_ESCAPES") == "1" {
		t.Fatalf("REQUIRE_ESCAPES=1, but %s", lack)
	}
	t.Skip(lack)
}

// start starts parentHelper in this world, from a copy of the test binary.
func (w world) start(t *testing.T, self, left string, command ...string) *parent {
	t.Helper()
	suites.Prove(t, "it makes worlds for processes, whose deadlines are seconds away")
	cgroup := ""
	if w.cgroups {
		cgroup = delegated(t, w.uid)
	}
	args := append([]string{helperArg, "world", strconv.Itoa(w.uid), strconv.FormatBool(w.hidden), cmp.Or(cgroup, "none"), strconv.FormatBool(w.subreaper), left}, command...)
	p := &parent{cmd: exec.Command(self, args...)}
	// Mounts are made in a namespace that only this process has. The root of it is private.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	p.cmd.Stderr = os.Stderr
	if !p.begin(t) {
		if _ = p.cmd.Wait(); p.cmd.ProcessState.ExitCode() == noWorld {
			unavailable(t, "this world can't be made here: "+w.String()+"; see the error above")
		}
		t.Fatal("the parent started nothing")
	}
	return p
}

// noWorld is the exit code of a process that couldn't make its world, as in a container that
// may not mount anything.
const noWorld = 98

// enterWorld makes the world around this process, and goes on as parentHelper.
func enterWorld(args []string) error {
	uid, err := strconv.Atoi(args[0])
	hidden, cgroup, subreaper := args[1] == "true", args[2], args[3]
	if cgroup == "none" {
		err = errors.Join(err, withoutCgroups())
	} else {
		err = errors.Join(err, os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte("0"), 0))
	}
	if hidden {
		// This is a new mount: to remount the one that is there would change it for everybody.
		err = errors.Join(err, unix.Mount("proc", "/proc", "proc", 0, "hidepid=2"))
	}
	if uid != 0 {
		err = errors.Join(err, syscall.Setgroups(nil), syscall.Setresgid(uid, uid, uid), syscall.Setresuid(uid, uid, uid))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(noWorld)
	}
	if _, err := os.Stat("/proc/1"); uid != 0 && hidden != (err != nil) {
		return fmt.Errorf("stat /proc/1: %w, with /proc hidden: %v", err, hidden)
	}
	env := append(os.Environ(), "GUARD_TEST_SUBREAPER="+subreaper)
	return syscall.Exec(os.Args[0], append([]string{os.Args[0], helperArg, "parent", args[4], "0s"}, args[5:]...), env)
}

// withoutCgroups unmounts the cgroups of this process's namespace.
func withoutCgroups() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[2] == "cgroup2" {
			if err := unix.Unmount(f[1], unix.MNT_DETACH); err != nil {
				return fmt.Errorf("unmount %s: %w", f[1], err)
			}
		}
	}
	return nil
}

// delegated makes a cgroup for a user, as systemd does for its services with Delegate=.
func delegated(t *testing.T, uid int) string {
	t.Helper()
	dir := string(makeCgroup())
	if dir == "" {
		unavailable(t, "no cgroup v2 with cgroup.kill (Linux 5.14) can be made here")
	}
	t.Cleanup(func() {
		until(cgroup(dir).kill)
		cgroup(dir).remove()
	})
	for _, name := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		must(t, os.Chown(filepath.Join(dir, name), uid, uid))
	}
	return dir
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
