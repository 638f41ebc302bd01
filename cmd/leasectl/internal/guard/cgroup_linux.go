package guard

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Each command gets a separate cgroup (version 2) where the guard may make one below the one that
// it runs in: as root, or where systemd or a container engine has delegated that. Whatever the
// command starts is in it, and cgroup.kill (Linux 5.14) kills all of it in one step, without /proc
// and also what runs as another user. It doesn't replace the walk of the tree: who may write to cgroups may
// leave one.

// cgroup is the directory of the command's cgroup; empty if it has none.
type cgroup string

// makeCgroup makes a cgroup for the command, or returns none.
func makeCgroup() cgroup {
	of, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	own, ok := cgroupDir(string(of), string(mounts))
	// To move a process takes the right to write to where both cgroups meet.
	if !ok || unix.Access(filepath.Join(own, "cgroup.procs"), unix.W_OK) != nil {
		return ""
	}
	c := cgroup(filepath.Join(own, fmt.Sprintf("leasectl-%d-%s", os.Getpid(), rand.Text()[:8])))
	if os.Mkdir(string(c), 0o755) != nil {
		return ""
	}
	if unix.Access(filepath.Join(string(c), "cgroup.kill"), unix.W_OK) != nil {
		c.remove()
		return ""
	}
	return c
}

// cgroupDir finds the directory of a process's cgroup by its /proc/PID/cgroup and
// /proc/PID/mountinfo; false if no directory shows it.
func cgroupDir(of, mountinfo string) (string, bool) {
	path, found := "", false
	for line := range strings.Lines(of) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			path, found = p, true
		}
	}
	// A path from outside a cgroup namespace begins with /.., and a deleted cgroup has no directory.
	if !found || strings.HasPrefix(path, "/..") || strings.HasSuffix(path, " (deleted)") {
		return "", false
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(mountinfo) {
		mount, super, _ := strings.Cut(line, " - ")
		f := strings.Fields(mount)
		if len(f) < 5 || !strings.HasPrefix(super, "cgroup2 ") {
			continue
		}
		root, point := unescape.Replace(f[3]), unescape.Replace(f[4])
		below, err := filepath.Rel(root, path)
		if err == nil && below != ".." && !strings.HasPrefix(below, "../") {
			return filepath.Join(point, below), true
		}
	}
	return "", false
}

// enter makes a command start in the cgroup, and returns what is to be called when it has.
func (c cgroup) enter(attr *syscall.SysProcAttr) (started func(), err error) {
	dir, err := os.Open(string(c))
	if err != nil {
		return nil, err
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	return func() { _ = dir.Close() }, nil
}

// populated reports that a process of the cgroup may run.
func (c cgroup) populated() bool {
	if c == "" {
		return false
	}
	events, err := os.ReadFile(filepath.Join(string(c), "cgroup.events"))
	return err == nil && bytes.Contains(events, []byte("populated 1"))
}

// kill kills all that is in the cgroup. Only an empty one leaves nothing to find.
func (c cgroup) kill() look {
	if c == "" {
		return look{}
	}
	err := os.WriteFile(filepath.Join(string(c), "cgroup.kill"), []byte("1"), 0)
	events, readErr := os.ReadFile(filepath.Join(string(c), "cgroup.events"))
	switch {
	case errors.Is(readErr, fs.ErrNotExist), bytes.Contains(events, []byte("populated 0")):
		return look{}
	case err != nil || readErr != nil:
		return look{unseen: true}
	}
	return look{found: 1, alive: 1}
}

// remove removes the cgroup, and what the command made below it, if it is empty.
func (c cgroup) remove() {
	if c == "" {
		return
	}
	var dirs []string
	_ = filepath.WalkDir(string(c), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for len(dirs) > 0 {
		last := len(dirs) - 1
		_ = unix.Rmdir(dirs[last])
		dirs = dirs[:last]
	}
}
