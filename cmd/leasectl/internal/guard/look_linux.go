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
	// code. refused are those of the living that the system refused to kill.
	found, alive int
	refused      []int
	// unseen is set when there is something that isn't found.
	unseen bool
}

// add counts a process after a try to kill it, with the error of that.
func (l *look) add(p process, err error) {
	l.found++
	if p.dead() {
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
	l.unseen = l.unseen || other.unseen
}

// refusedFor is how long looking goes on when all that is left are processes
// that can't be killed.
const refusedFor = 2 * time.Second

// search decides whether to look once more. It is pure; all instants are of
// [Boottime].
type search struct {
	// since is when all that is left was found to be out of reach; 0 if it isn't.
	since time.Duration
}

// over takes what a look at an instant has found, and reports whether that settles it, and
// what has survived then. Only a look that finds nothing is proof that nothing has. What was sent
// SIGKILL runs no more of its program, and is waited for however long the system needs.
func (s *search) over(l look, now time.Duration) (survivors, bool) {
	outOfReach := l.unseen && l.alive == 0 || len(l.refused) > 0 && l.alive == len(l.refused)
	switch {
	case l.found == 0 && !l.unseen:
		return survivors{}, true
	case !outOfReach:
		s.since = 0
	case s.since == 0:
		s.since = now
	case now-s.since > refusedFor:
		slices.Sort(l.refused)
		return survivors{PIDs: slices.Compact(l.refused), Unseen: l.unseen}, true
	}
	return survivors{}, false
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
