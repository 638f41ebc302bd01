//go:build unix

package demo

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a process in its own group, so that Ctrl-C signals the
// demo alone, which then stops its workers.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
