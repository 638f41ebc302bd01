package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hintGap is the least time between two hints. What comes in between makes one of them.
const hintGap = 20 * time.Millisecond

// hint tells those who watch the ledger that a record was appended. If it can't, they go without.
func hint(f files) {
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	_ = unix.UtimesNanoAt(unix.AT_FDCWD, f.name(1), now, 0)
}

// watch calls changed until ctx ends, after each hint. It watches the directory and not the log,
// because that is removed and created again when nobody uses the ledger.
func (l *Ledger) watch(ctx context.Context, changed func()) error {
	target, err := filepath.EvalSymlinks(named(l.o.Path))
	if err != nil {
		return err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return refused(err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer func() { _ = events.Close() }()
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(target), unix.IN_ATTRIB|unix.IN_MOVE_SELF|unix.IN_ONLYDIR); err != nil {
		return refused(err)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = events.SetReadDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-ended
		}
	}()
	log := filepath.Base(target) + suffixes[1]
	for b := make([]byte, 4096); ; {
		n, err := events.Read(b)
		if err != nil {
			return fmt.Errorf("inotify: %w", err)
		}
		hinted, gone := told(b[:n], log)
		if hinted {
			changed()
		}
		if gone {
			return fmt.Errorf("inotify: %s was removed or renamed: %w", filepath.Dir(target), os.ErrNotExist)
		}
		timer := l.o.Clock.Timer(hintGap)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// refused is why inotify can't be had. Its limits count all processes of a user, and one that ends
// leaves room.
func refused(err error) error {
	if errors.Is(err, unix.ENOSYS) {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return fmt.Errorf("inotify: %w", err)
}

// told reads what inotify tells: whether it is of the log, or was more than it could keep; and whether
// the directory is gone from its path.
func told(b []byte, log string) (hinted, gone bool) {
	for len(b) >= unix.SizeofInotifyEvent {
		mask, size := binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[12:])
		b = b[unix.SizeofInotifyEvent:]
		name := strings.TrimRight(string(b[:size]), "\x00")
		b = b[size:]
		hinted = hinted || name == log || mask&unix.IN_Q_OVERFLOW != 0
		gone = gone || mask&(unix.IN_IGNORED|unix.IN_MOVE_SELF) != 0
	}
	return hinted, gone
}
