//go:build !linux

package self

import "os"

// Process says nothing here.
func Process() string { return "" }

// IsGone reports that a process was one with the PID of this one: there are no namespaces here.
func IsGone(pid int, process string) bool { return process == "" && pid == os.Getpid() }
