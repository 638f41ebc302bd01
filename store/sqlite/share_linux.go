package sqlite

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The bytes of a ledger that its logs are locked in: one byte for each pair of -wal and
// -shm files that can be. No file is so large, so SQLite locks none of them.
const (
	logsFirst = 1 << 62
	logsCount = 1 << 61
)

// seesOtherLogs reports that a handle finds out whether another log of the file is in use.
const seesOtherLogs = true

// identity is that of a file while it is open.
type identity struct{ device, inode int64 }

func identityOf(info os.FileInfo) identity {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{int64(s.Dev), int64(s.Ino)}
}

// usage is how this process uses a file: from its first connection until the last one is closed,
// and all handles have let go of the time line. One whose connection was interrupted holds that on.
type usage struct {
	connections int // guarded by usages.mu

	mu   sync.Mutex // before usages.mu
	lock *os.File   // nil until first needed
	log  int64      // that is locked, or 0
	line int64      // the byte of the time line that is held, or 0
	// holds counts those that hold the line.
	holds int
}

// usages are the files that connections of this process are open on.
var usages = struct {
	mu sync.Mutex
	of map[identity]*usage
}{of: map[identity]*usage{}}

// enter notes that a connection to a file is about to be opened, until the returned
// function is called. It returns nil if there is no file.
//
// Closing any descriptor of a file drops the locks that SQLite holds on it for the
// process. So the one that share locks is closed with the process's last connection.
func enter(path string) (leave func()) {
	info, err := stat(path)
	if err != nil {
		return nil
	}
	id := identityOf(info)
	usages.mu.Lock()
	defer usages.mu.Unlock()
	u := usages.of[id]
	if u == nil {
		u = &usage{}
		usages.of[id] = u
	}
	u.connections++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		usages.mu.Lock()
		u.connections--
		last := u.connections == 0
		usages.mu.Unlock()
		if last && u.log != 0 {
			u.log = 0
			_ = ofd(u.lock, unix.F_OFD_SETLK, unix.F_UNLCK, logsFirst, logsCount, nil)
		}
		u.end(id)
	}
}

// end closes what locks a file, and drops all its locks, once nothing uses them.
func (u *usage) end(id identity) {
	usages.mu.Lock()
	defer usages.mu.Unlock()
	if u.connections > 0 || u.holds > 0 || usages.of[id] != u {
		return
	}
	delete(usages.of, id)
	if u.lock != nil {
		_ = u.lock.Close()
	}
}

// share claims a ledger for its log, until all connections of this process to the ledger
// are closed: as long as there is one, the log stays. The caller's must be open. It
// returns errOtherLog while another handle, of any process, has claimed the ledger for
// another log, by whatever path.
//
// A claim is a read lock on the byte that stands for the log. It is taken first, and
// then all other bytes are tested, so of two handles with two logs at least one sees
// the other. The lock belongs to the open file (an OFD lock), so nothing else that this
// process does with the file drops it, and the kernel drops it when the process dies.
func share(f files) error {
	u, err := usageOf(f)
	if err != nil {
		return err
	}
	defer u.mu.Unlock()
	log := logOf(f)
	switch u.log {
	case log:
		return nil
	case 0:
	default:
		return otherLog(f)
	}
	err = ofd(u.lock, unix.F_OFD_SETLK, unix.F_RDLCK, log, 1, nil)
	if err == nil {
		err = others(u.lock, f, log)
	}
	if errors.Is(err, unix.EINVAL) {
		return nil // The kernel has no such locks.
	}
	if err != nil {
		_ = ofd(u.lock, unix.F_OFD_SETLK, unix.F_UNLCK, logsFirst, logsCount, nil)
		return err
	}
	u.log = log
	return nil
}

// claimed returns errOtherLog if a ledger that isn't open yet is claimed for another
// log than the one beside it. SQLite, which would find that the log doesn't fit, doesn't
// say why. Other errors are left to it.
func claimed(path string) error {
	leave := enter(path)
	if leave == nil {
		return nil
	}
	defer leave()
	f, err := filesAt(path, true)
	log := int64(0)
	switch {
	case err == nil:
		log = logOf(f)
	case errors.Is(err, fs.ErrNotExist):
		if f, err = filesAt(path, false); err != nil {
			return nil
		}
	default:
		return nil
	}
	u, err := usageOf(f)
	if err != nil {
		return nil
	}
	defer u.mu.Unlock()
	if u.log != 0 && u.log != log {
		return otherLog(f)
	}
	if err := others(u.lock, f, log); errors.Is(err, errOtherLog) {
		return err
	}
	return nil
}

// usageOf is the usage of a file that was entered, locked and ready to use its lock.
func usageOf(f files) (*usage, error) {
	of := func() *usage {
		usages.mu.Lock()
		defer usages.mu.Unlock()
		return usages.of[identityOf(f.infos[0])]
	}
	u := of()
	if u == nil {
		return nil, errChanged // The file was replaced just now, or the connection is gone.
	}
	u.mu.Lock()
	if of() != u {
		u.mu.Unlock()
		return nil, errChanged
	}
	if u.lock != nil {
		return u, nil
	}
	lock, err := os.OpenFile(f.target, os.O_RDWR, 0) // To claim all time lines, it must be able to write.
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		lock, err = os.Open(f.target)
	}
	if err != nil {
		u.mu.Unlock()
		return nil, err
	}
	if info, err := lock.Stat(); err != nil || !os.SameFile(info, f.infos[0]) {
		_ = lock.Close()
		u.mu.Unlock()
		return nil, errChanged
	}
	u.lock = lock
	return u, nil
}

// logOf is the byte that stands for a log.
func logOf(files files) int64 {
	h := fnv.New64a()
	for _, info := range files.infos[1:] {
		_, _ = fmt.Fprintln(h, identityOf(info))
	}
	return logsFirst + int64(h.Sum64()%logsCount)
}

// others returns errOtherLog if a log but the given one is locked by another descriptor.
func others(lock *os.File, f files, log int64) error {
	below, above := max(log-logsFirst, 0), max(log+1, logsFirst)
	for _, r := range [][2]int64{{logsFirst, below}, {above, logsFirst + logsCount - above}} {
		if r[1] == 0 {
			continue
		}
		held := int16(unix.F_UNLCK)
		if err := ofd(lock, unix.F_OFD_GETLK, unix.F_WRLCK, r[0], r[1], &held); err != nil {
			return fmt.Errorf("look for other logs: %w", err)
		}
		if held != unix.F_UNLCK {
			return otherLog(f)
		}
	}
	return nil
}

// ofd does one operation on a range of locks, and tells in held what is held there.
func ofd(f *os.File, command int, kind int16, start, size int64, held *int16) error {
	lock := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: start, Len: size}
	err := unix.FcntlFlock(f.Fd(), command, &lock)
	if held != nil {
		*held = lock.Type
	}
	return err
}
