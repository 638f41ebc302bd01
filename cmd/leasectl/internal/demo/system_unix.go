//go:build unix

package demo

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a process in its own group, so that Ctrl-C signals the
// demo alone, which then stops its workers.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

const shared, exclusive = syscall.LOCK_SH, syscall.LOCK_EX

// lock waits for a lock on a file. It lasts until the file is closed, by the end of its process at the latest.
func lock(file uintptr, how int) error { return syscall.Flock(int(file), how) }
