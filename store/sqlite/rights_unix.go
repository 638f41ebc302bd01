//go:build unix

package sqlite

import "golang.org/x/sys/unix"

// mayWrite asks the kernel whether the process may read and write a file or
// directory, without opening it. Tests set it.
var mayWrite = func(path string) error { return unix.Access(path, unix.R_OK|unix.W_OK) }

// mayRead is mayWrite for reading alone.
func mayRead(path string) error { return unix.Access(path, unix.R_OK) }
