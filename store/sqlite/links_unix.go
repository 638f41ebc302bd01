//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// links is the number of names that a file has.
func links(info os.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(s.Nlink)
	}
	return 1
}
