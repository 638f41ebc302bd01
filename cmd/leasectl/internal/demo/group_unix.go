//go:build unix

package demo

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a process in a group of its own, so that Ctrl-C signals the
// demo alone, which then stops its workers.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
