package guard

import (
	"errors"
	"os"
	"os/signal"
	"sync"
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
// living guard, is taken for an orphan of the dead one, killed and reaped. Process 1 gets
// the orphans of others, too: it reaps all its children but guards, whenever they end. The error
// says what this process lacks, without which no command can be guarded.
func BecomeSubreaper() error {
	if err := prepare(); err != nil {
		return err
	}
	subreaper.Store(true)
	if os.Getpid() == 1 {
		reaping.Do(reapOrphans)
	}
	return nil
}

// reaping makes sure that orphans are reaped once.
var reaping sync.Once

// reapOrphans reaps, from now on, what this process gets as process 1: the orphans of all
// others. Guards are left to those that wait for them.
func reapOrphans() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	ended <- unix.SIGCHLD // for those that have ended already
	go func() {
		for range ended {
			guards.Lock()
			for _, pid := range children(os.Getpid()) {
				if !guards.alive[pid] {
					_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
				}
			}
			guards.Unlock()
		}
	}()
}

// awaitDeath returns when the guard has ended, and leaves it to be reaped. Only
// then are its children given to us; the pipe ends a little earlier.
func awaitDeath(guard int) {
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, guard, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// backUp kills the descendants of a guard that doesn't, and returns how many of
// them were alive, and of how many the system refused that.
func (r remains) backUp() (alive, refused int) {
	l := r.cgroup.kill()
	l.join(killTree(r.guard))
	return l.alive, len(l.refused)
}

// rescue kills the processes that a dead guard left, until none is found any more,
// and returns those that can't be killed. The guard must not be
// reaped yet: as long as it isn't, its number can't name another session.
func (r remains) rescue() survivors {
	// Orphans are ours, and the kernel lists them, or a cgroup has them. Otherwise
	// nothing proves that what /proc hides is gone.
	listed := subreaper.Load() && listsChildren()
	blind := !listed && r.cgroup == "" && hides()
	left := until(func() look {
		l := r.cgroup.kill()
		l.join(r.rescueOnce())
		l.unseen = l.unseen || blind
		return l
	})
	r.cgroup.remove()
	return left
}

// rescueOnce kills and reaps what it finds in one look: the members of the
// guard's session, orphans that left it, and the descendants of both. The dead ones
// that it reaped count as found: their children may have become ours after the look.
func (r remains) rescueOnce() (found look) {
	// No guard may be born in between and be taken for an orphan.
	guards.Lock()
	defer guards.Unlock()
	self := os.Getpid()
	session, err := unix.Getsid(0)
	if err != nil {
		return look{unseen: true}
	}
	ours := func(p process) bool {
		if p.session == r.guard {
			return true
		}
		return subreaper.Load() && p.parent == self && p.session != session && !guards.alive[p.pid]
	}
	all := processes()
	for _, p := range offspring(process{pid: self}) {
		all[p.pid] = p
	}
	for pid, p := range all {
		if pid == r.guard || !ours(p) || p.dead() && p.parent != self {
			continue
		}
		found.add(p, killIf(p, ours))
		if !p.dead() {
			found.join(killTree(pid))
		}
		if p.parent == self { // last, since its number is free from then on
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
	return found
}
