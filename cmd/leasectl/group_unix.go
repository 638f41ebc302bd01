//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a process in a group of its own, so that Ctrl-C signals the
// demo alone, which then ends its workers itself.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
