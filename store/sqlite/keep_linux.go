package sqlite

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The bytes of a SQLite file that every process which uses it has locked for reading.
// A process that removes the log locks them for writing first.
const (
	sharedFirst = 0x40000000 + 2
	sharedSize  = 510
)

// keepLog keeps other processes from removing the log of a file until the returned
// file is closed. It returns errChanged if one is about to.
//
// The lock belongs to the descriptor, not to the process, so SQLite's own locks don't
// clash with it. But closing the descriptor drops those of this process on the file.
// So it is only for a file that this process can't write, and each handle that reads it
// keeps its own until it has closed its database.
func keepLog(target string) (*os.File, error) {
	f, err := os.Open(target)
	if err != nil {
		return nil, err
	}
	lock := unix.Flock_t{Type: unix.F_RDLCK, Start: sharedFirst, Len: sharedSize}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, errChanged
	}
	return nil, fmt.Errorf("lock the file for reading: %w", err)
}
