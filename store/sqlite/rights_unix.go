//go:build unix

package sqlite

import "golang.org/x/sys/unix"

// mayUse asks the kernel whether the process may read and write a file or
// directory, without opening it.
func mayUse(path string) error { return unix.Access(path, unix.R_OK|unix.W_OK) }
