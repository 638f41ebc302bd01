// Package tmpfs puts the temporary files of tests into memory. A disk that others keep busy
// can hold up an fsync for seconds, and then workers on a ledger of SQLite miss slots that
// are as short as those of tests.
package tmpfs

import (
	"os"
	"syscall"
)

// Use makes /dev/shm the directory for temporary files, of child processes, too, unless it
// is small, or forbids to run programs. TestMain calls it before it runs the tests.
func Use() {
	const dir, noExec, least = "/dev/shm", 0x8, 1 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Flags&noExec != 0 || fs.Bavail*uint64(fs.Bsize) < least {
		return
	}
	_ = os.Setenv("TMPDIR", dir)
}
