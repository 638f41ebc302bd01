//go:build unix && !aix && !linux && !netbsd

package guard

import "golang.org/x/sys/unix"

const monotonic = unix.CLOCK_MONOTONIC
