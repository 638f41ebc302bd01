//go:build unix && !aix

package guard

import (
	"cmp"
	"encoding/gob"
	"fmt"
	"syscall"
	"time"
)

// The backup by the program, for a guard that is stopped or starved. At the
// instant by which all must be over the guard is sent SIGCONT, which does no
// harm otherwise. If it hasn't reported BackUpAfter later, the program walks
// the tree and kills, again and again; and if it finds nothing alive any more, in so many
// looks one after the other, giveUpAfter later, it kills the guard itself. It does so, too, if long
// after the guard should have given up nothing is alive but what can't be killed.
const (
	backUpEvery = 20 * time.Millisecond
	giveUpAfter = time.Second
	idleLooks   = 5
	giveUpAtAll = 12 * time.Second
)

// attend waits for the end of the guard, and makes sure of it.
func (p *Process) attend(decoder *gob.Decoder) {
	received := receive[report](decoder)
	var final *report
	forced := false
	for open := true; open; {
		select {
		case r, ok := <-received:
			open = ok
			if ok && r.Ended {
				final = &r
				// All that is left to do for it is to exit.
				p.due.set(Boottime() + giveUpAfter)
			}
		case <-p.due.C:
			forced = p.force(final != nil) || forced
		}
	}
	awaitDeath(p.guard.pid())
	status, err := Status{Code: -1, Signal: syscall.SIGKILL, Reason: GuardDied}, error(nil)
	var left survivors
	if final != nil {
		status, left = final.Status, final.Survivors
		p.from, p.gone = final.From, final.Gone
	} else {
		left = p.remains().rescue()
	}
	said := p.guard.reap()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case final != nil && p.backedUp:
		status = status.killedFor(p.watch.reason)
	case final == nil && forced:
		status.Reason = p.watch.reason
	case final == nil:
		err = fmt.Errorf("run %q: %w: %s", p.name, ErrGuardDied, said)
	}
	if survived := left.error(); survived != nil {
		err = both(err, fmt.Errorf("run %q: %w", p.name, survived))
	}
	p.orders.close()
	_ = p.reports.Close()
	p.due.stop()
	p.status, p.err = status, err
	close(p.done)
}

// killedFor gives a command the program's own reason, if the program killed for the guard: to a guard that wakes up afterwards,
// that SIGKILL is anybody's, and it may not have read the order that it was for.
func (s Status) killedFor(own Reason) Status {
	if s.Code == -1 && s.Signal == syscall.SIGKILL {
		s.Reason = own
	}
	return s
}

// both is two errors in one line; either may be nil.
func both(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return fmt.Errorf("%w; %w", a, b)
}

// force acts for a guard that is overdue, and reports whether it killed it.
func (p *Process) force(ended bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := Boottime()
	if ended {
		p.guard.kill()
		return true
	}
	p.watch.at(now)
	late := now - p.end()
	switch {
	case late < 0:
		p.due.set(p.end())
		return false
	case late < BackUpAfter:
		p.guard.resume()
		p.due.set(p.end() + BackUpAfter)
		return false
	}
	before := p.cgroup.populated() // What is killed with its cgroup may be gone before the next look.
	alive, refused := p.remains().backUp()
	p.backedUp = p.backedUp || before || alive > 0
	if p.idle++; alive > 0 {
		p.idle = 0
	}
	p.guard.resume()
	p.due.set(now + backUpEvery)
	if p.idle >= idleLooks && late > giveUpAfter || alive == refused && late > giveUpAtAll {
		p.guard.kill()
		return true
	}
	return false
}
