package guard

import (
	"errors"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// subreaper is set when orphans of a killed guard become our children.
var subreaper atomic.Bool

func init() { subreaper.Store(os.Getpid() == 1) }

// BecomeSubreaper makes this process the one that descendants fall to if their
// guard is killed, so that [Process] can find and kill them. Call it once, early
// in main; it holds for the whole process and can't be undone. After the death
// of a guard every child of this process outside its session, other than a
// living guard, is taken for an orphan of the dead one, killed and reaped.
func BecomeSubreaper() error {
	if err := setSubreaper(); err != nil {
		return err
	}
	subreaper.Store(true)
	return nil
}

// awaitDeath returns when the guard has ended, and leaves it to be reaped. Only
// then are its children given to us; the pipe ends a little earlier.
func awaitDeath(guard int) {
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, guard, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// backUp kills the descendants of a guard that doesn't, and returns how many of
// them were alive.
func backUp(guard, _ int) (alive int) {
	alive, _ = killTree(guard)
	return alive
}

// rescue kills the processes that a dead guard left, until none is found any more,
// and returns those that the system refused to kill. The guard must not be
// reaped yet: as long as it isn't, its number can't name another session.
func rescue(guard, _ int) []int {
	return untilNone(func() (found, alive int, refused []int) { return rescueOnce(guard) })
}

// rescueOnce kills and reaps what it finds in one look: the members of the
// guard's session, orphans that left it, and the descendants of both. The dead ones
// that it reaped count as found: their children may have become ours after the look.
func rescueOnce(guard int) (found, alive int, refused []int) {
	// No guard may be born in between and be taken for an orphan.
	guards.Lock()
	defer guards.Unlock()
	self := os.Getpid()
	session, err := unix.Getsid(0)
	if err != nil {
		return 0, 0, nil
	}
	ours := func(p process) bool {
		if p.session == guard {
			return true
		}
		return subreaper.Load() && p.parent == self && p.session != session && !guards.alive[p.pid]
	}
	for pid, p := range processes() {
		if pid == guard || !ours(p) {
			continue
		}
		if p.dead() {
			if p.parent == self {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
				found++
			}
			continue
		}
		alive++
		if errors.Is(killIf(pid, ours), unix.EPERM) {
			refused = append(refused, pid)
		}
		more, left := killTree(pid)
		alive += more
		refused = append(refused, left...)
	}
	return found + alive, alive, refused
}
