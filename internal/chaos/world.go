//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// enterCommand is the argument that makes this program enter a world, and then become
// another program: enter WORLD PROGRAM ARGUMENTS….
const enterCommand = "enter"

// world is what a leasectl finds around it.
type world string

const (
	asIs      world = "as it is"
	noCgroups world = "no cgroups"
	// asNobody is a user without cgroups, from whom /proc hides the processes of others, and its
	// own that aren't dumpable.
	asNobody world = "nobody, /proc hidden, no cgroups"
)

// nobody is a user without rights.
const nobody = 65534

// worldsHere are the worlds that can be made here: only root can make others than this one.
func worldsHere() ([]world, error) {
	lack := "not root"
	if os.Getuid() == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		out, err := exec.Command(self, enterCommand, string(asNobody), "/bin/true").CombinedOutput()
		if err == nil {
			return []world{asIs, noCgroups, asNobody}, nil
		}
		lack = fmt.Sprintf("%v: %s", err, out)
	}
	if os.Getenv("REQUIRE_ESCAPES") == "1" {
		return nil, fmt.Errorf("REQUIRE_ESCAPES=1, but no other world can be made here: %s", lack)
	}
	fmt.Printf("Only in this world, since no other can be made here: %s\n", lack)
	return []world{asIs}, nil
}

// program is what to start another program under, so that it is in this world.
func (w world) program(self string) []string {
	if w == asIs {
		return nil
	}
	return []string{self, enterCommand, string(w)}
}

// enter makes a world around this process, and becomes another program. What it mounts is in
// a namespace that only this process and its descendants have.
func enter(w world, program []string) error {
	// The namespace is that of the thread, which becomes the process.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	mounts, err := os.ReadFile("/proc/thread-self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			err = errors.Join(err, unix.Unmount(f[1], unix.MNT_DETACH))
		}
	}
	if err == nil && w == asNobody {
		err = hideFrom(nobody)
	}
	if err != nil {
		return fmt.Errorf("make the world %q: %w", w, err)
	}
	return unix.Exec(program[0], program, os.Environ())
}

// hideFrom mounts a new /proc, which hides processes, and makes this thread a user's.
func hideFrom(uid int) error {
	if err := unix.Mount("proc", "/proc", "proc", 0, "hidepid=2"); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := errors.Join(unix.Setgroups(nil), unix.Setresgid(uid, uid, uid), unix.Setresuid(uid, uid, uid)); err != nil {
		return err
	}
	if _, err := os.Stat("/proc/1"); err == nil {
		return errors.New("/proc hides nothing")
	}
	// A change of the user clears it.
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}
