package guard

import (
	"errors"
	"slices"
	"syscall"
	"time"
)

// look is what was found in one look for processes that must be gone.
type look struct {
	// found is how many aren't reaped yet, and alive how many of these may still run
	// code. refused are those of the living that the system refused to kill, and dead those that
	// run no more code.
	found, alive  int
	refused, dead []int
	// unseen is set when there is something that isn't found.
	unseen bool
}

// add counts a process after a try to kill it, with the error of that.
func (l *look) add(p process, err error) {
	l.found++
	if p.dead() {
		l.dead = append(l.dead, p.pid)
		return
	}
	l.alive++
	if errors.Is(err, syscall.EPERM) {
		l.refused = append(l.refused, p.pid)
	}
}

// join adds what another look found.
func (l *look) join(other look) {
	l.found += other.found
	l.alive += other.alive
	l.refused = append(l.refused, other.refused...)
	l.dead = append(l.dead, other.dead...)
	l.unseen = l.unseen || other.unseen
}

// outOfReach reports whether something is, and whether nothing else is left.
func (l look) outOfReach() (some, all bool) {
	return l.unseen || len(l.refused) > 0, l.alive == len(l.refused) && (l.unseen || l.alive > 0)
}

const (
	// refusedFor is how long looking goes on when all that is left is out of reach.
	refusedFor = 2 * time.Second
	// lookFor is how long it goes on at most while something is out of reach, whatever else
	// comes and goes.
	lookFor = 10 * time.Second
	// deadFor is how long it goes on when all that is left is dead, and isn't reaped.
	deadFor = 500 * time.Millisecond
)

// search decides whether to look once more. It is pure; all instants are of
// [Boottime].
type search struct {
	// since has when each process that can't be killed was first found, and that of
	// number 0 when all that is left was first unseen.
	since map[int]time.Duration
	// something was out of reach from first to last, with no break longer than refusedFor.
	first, last time.Duration
	// dead are those that are all that is left since a time.
	dead      []int
	deadSince time.Duration
}

// over takes what a look at an instant has found, and reports whether that settles it, and
// what has survived then. Nothing has if the look finds nothing, or for long the same dead
// processes and nothing else (see [family.killAll]). While all can be killed there is no other
// end: what was sent SIGKILL runs no more of its program, and is waited for however long the
// system needs.
func (s *search) over(l look, now time.Duration) (survivors, bool) {
	if l.found == 0 && !l.unseen || s.stayDead(l, now) {
		return survivors{}, true
	}
	if s.outOfReach(l, now) {
		slices.Sort(l.refused)
		return survivors{PIDs: slices.Compact(l.refused), Unseen: l.unseen}, true
	}
	return survivors{}, false
}

// stayDead reports whether the same dead processes have been all that is left for long.
func (s *search) stayDead(l look, now time.Duration) bool {
	slices.Sort(l.dead)
	switch {
	case l.unseen || l.found != len(l.dead):
		s.dead = nil
	case !slices.Equal(l.dead, s.dead):
		s.dead, s.deadSince = l.dead, now
	}
	return len(s.dead) > 0 && now-s.deadSince > deadFor
}

// outOfReach reports whether something has been out of reach for so long that it will stay.
func (s *search) outOfReach(l look, now time.Duration) bool {
	some, all := l.outOfReach()
	if some && (s.first == 0 || now-s.last > refusedFor) {
		s.first = now
	}
	if some {
		s.last = now
	}
	stuck := slices.Clone(l.refused)
	if l.unseen && all {
		stuck = append(stuck, 0)
	}
	since, oldest := map[int]time.Duration{}, now
	for _, pid := range stuck {
		since[pid] = now
		if at, known := s.since[pid]; known {
			since[pid] = at
		}
		oldest = min(oldest, since[pid])
	}
	s.since = since
	return all && now-oldest > refusedFor || some && now-s.first > lookFor
}

// until repeats a look, which kills what it finds, until that is over.
func until(kill func() look) survivors {
	var s search
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		if left, over := s.over(kill(), Boottime()); over {
			return left
		}
		time.Sleep(pause)
	}
}
