package sqlite

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"golang.org/x/sys/unix"
)

// The bytes of a ledger that its time lines are locked in, one for each line that can be.
// They lie below those of the logs.
const (
	linesFirst = 1 << 61
	linesCount = 1 << 60
	// claimedLines stands for all of them.
	claimedLines = -1
)

// byteOf is the byte that stands for a line.
func byteOf(n line) int64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, n.offset.Microseconds())
	return linesFirst + int64(h.Sum64()%linesCount)
}

// holdLine has this process hold a line until all that hold it have let go, whatever becomes of
// their connections. It returns errOtherLine if another one is in use, and errLines while none
// may be taken.
func holdLine(f files, n line) (letGo func(), err error) {
	u, err := usageOf(f)
	if err != nil {
		return nil, err
	}
	defer u.mu.Unlock()
	at := byteOf(n)
	switch u.line {
	case at:
		u.holds++
		return u.letGo(f), nil
	case 0:
	default:
		return nil, errOtherLine
	}
	switch err := ofd(u.lock, unix.F_OFD_SETLK, unix.F_RDLCK, at, 1, nil); {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return nil, errLines
	case errors.Is(err, unix.EINVAL):
		return func() {}, nil // The kernel has no such locks.
	case err != nil:
		return nil, fmt.Errorf("hold the time line: %w", err)
	}
	held, err := heldBytes(u, linesFirst, linesCount)
	if slices.ContainsFunc(held, func(b int64) bool { return b != at }) {
		err = errOtherLine
	}
	if err != nil {
		u.dropLine()
		return nil, err
	}
	u.line, u.holds = at, 1
	return u.letGo(f), nil
}

func (u *usage) dropLine() {
	u.line, u.holds = 0, 0
	_ = ofd(u.lock, unix.F_OFD_SETLK, unix.F_UNLCK, linesFirst, linesCount, nil)
}

// letGo returns what ends one hold of the line.
func (u *usage) letGo(f files) func() {
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.holds--; u.holds == 0 {
			u.dropLine()
		}
		u.end(identityOf(f.infos[0]))
	}
}

// usedLines are those of some lines that processes hold, this one included, each once. It
// returns errLines while it can't be said which.
func usedLines(f files, rows map[string]line) (used []line, err error) {
	u, err := usageOf(f)
	if err != nil {
		return nil, err
	}
	defer u.mu.Unlock()
	held, err := heldBytes(u, linesFirst, linesCount)
	if err != nil {
		return nil, err
	}
	left := map[int64]bool{}
	if u.line != 0 {
		left[u.line] = true
	}
	for _, b := range held {
		left[b] = true
	}
	for _, n := range rows {
		if b := byteOf(n); left[b] {
			delete(left, b)
			used = append(used, n)
		}
	}
	if len(left) > 0 {
		return nil, errLines
	}
	return used, nil
}

// heldBytes are the first bytes of the locks that other processes have in a range.
func heldBytes(u *usage, first, count int64) (held []int64, err error) {
	if count <= 0 {
		return nil, nil
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: first, Len: count}
	switch err := unix.FcntlFlock(u.lock.Fd(), unix.F_OFD_GETLK, &lock); {
	case errors.Is(err, unix.EINVAL):
		return nil, nil // The kernel has no such locks.
	case err != nil:
		return nil, fmt.Errorf("look for other time lines: %w", err)
	case lock.Type == unix.F_UNLCK:
		return nil, nil
	}
	begin, end := max(lock.Start, first), lock.Start+lock.Len
	if lock.Len == 0 {
		end = first + count
	}
	below, err := heldBytes(u, first, begin-first)
	if err != nil {
		return nil, err
	}
	above, err := heldBytes(u, end, first+count-end)
	return append(append(below, begin), above...), err
}

// claimLines keeps all processes from using any line of a ledger, until release is called. It returns ErrInUse if one is in
// use, unless only the caller holds it, or if another handle of this process is open.
func claimLines(f files, holds bool) (release func(), err error) {
	u, err := usageOf(f)
	if err != nil {
		return nil, err
	}
	defer u.mu.Unlock()
	usages.mu.Lock()
	others := u.connections > 1
	usages.mu.Unlock()
	if others || u.holds > 1 || u.holds == 1 && !holds {
		return nil, fmt.Errorf("%w: another handle of this process is open", ErrInUse)
	}
	switch err := ofd(u.lock, unix.F_OFD_SETLK, unix.F_WRLCK, linesFirst, linesCount, nil); {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return nil, fmt.Errorf("%w: another process has it open and leases: stop all workers first", ErrInUse)
	case err != nil:
		return nil, fmt.Errorf("claim the time lines: %w", err)
	}
	u.line, u.holds = claimedLines, 1
	return u.letGo(f), nil
}
