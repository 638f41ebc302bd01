//go:build unix && !aix

package guard

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is a command under guard. Its methods may be called concurrently.
type Process struct {
	name    string
	guard   *guardProcess
	reports *os.File
	// due is set again whenever the instant moves by which all must be over.
	due  *alarm
	done chan struct{}

	mu     sync.Mutex
	orders *orders
	watch  watch
	pid    int
	cgroup cgroup
	// backedUp is set when the program itself killed descendants.
	backedUp bool
	// idle is how often, one after the other, the program found none of them alive.
	idle int

	// Written before done is closed, read after.
	status Status
	err    error
	// from and gone are those of the guard's report, or zero.
	from, gone time.Duration
}

// PID returns the number of the command's process, which is also that of its
// process group.
func (p *Process) PID() int { return p.pid }

// Means returns what the guard kills by: "cgroup", which only Linux has, next to
// "process tree", or the latter alone. Other systems have but a "process group".
func (p *Process) Means() string {
	switch {
	case p.cgroup != "":
		return "cgroup and process tree"
	case runtime.GOOS == "linux":
		return "process tree"
	}
	return "process group"
}

// remains are what a guard that is stopped or dead leaves to the program.
type remains struct {
	guard, command int
	cgroup         cgroup
}

func (p *Process) remains() remains { return remains{p.guard.pid(), p.pid, p.cgroup} }

// Stop asks for SIGTERM now and SIGKILL when the grace is over or the deadline
// has come. It doesn't wait. The error wraps [os.ErrProcessDone] if the command
// has ended already.
func (p *Process) Stop() error { return p.StopBy(0) }

// StopBy is Stop with a deadline that is, at most, the given instant of
// [Boottime]. It never makes the deadline later; zero leaves it as it is. It
// may follow a Stop.
func (p *Process) StopBy(deadline time.Duration) error {
	return p.send("stop", order{Verb: stopVerb, Deadline: deadline}, func(now time.Duration) error {
		p.watch.stop(now, deadline)
		return nil
	})
}

// Kill asks for SIGKILL at once, without a grace. It doesn't wait. The error
// wraps [os.ErrProcessDone] if the command has ended already.
func (p *Process) Kill() error {
	return p.send("kill", order{Verb: killVerb}, func(now time.Duration) error {
		if p.watch.at(now) == letRun || p.watch.reason == Stopped {
			p.watch.reason = Killed
		}
		p.watch.stopping, p.watch.killAt = true, now
		return nil
	})
}

// Signal sends a signal to the command's own process, unless that has ended. It doesn't wait.
func (p *Process) Signal(s syscall.Signal) error {
	return p.send("signal", order{Verb: signalVerb, Signal: s}, func(time.Duration) error { return nil })
}

// Extend moves the deadline to a later instant of [Boottime], and sets how long
// before it SIGTERM comes; a notice of zero is Grace. It is an error, and nothing
// changes, if the instant isn't later, the notice is negative or more than Grace, or
// SIGTERM is due. Without an error the guard has been asked; should SIGTERM have
// been due when it read that, the command ends at the earlier deadline, as Wait reports.
func (p *Process) Extend(deadline, notice time.Duration) error {
	notice = cmp.Or(notice, p.watch.grace)
	return p.send("extend", order{Verb: extendVerb, Deadline: deadline, Notice: notice}, func(now time.Duration) error {
		switch {
		case p.watch.at(now) != letRun:
			return ErrTooLate
		case notice < 0 || notice > p.watch.grace:
			return fmt.Errorf("the notice %v is not between 0 and the grace %v", notice, p.watch.grace)
		case deadline <= p.watch.deadline:
			return fmt.Errorf("the new deadline %v is not later than %v", deadline, p.watch.deadline)
		}
		p.watch.extend(now, deadline, notice)
		return nil
	})
}

// send applies an order to the program's own watch, by which its backup acts, and sends
// it to the guard. It applies even if the guard can't be reached.
func (p *Process) send(what string, o order, apply func(now time.Duration) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
		return fmt.Errorf("%s %q: %w", what, p.name, os.ErrProcessDone)
	default:
	}
	if err := apply(Boottime()); err != nil {
		return fmt.Errorf("%s %q: %w", what, p.name, err)
	}
	p.due.set(p.end())
	// A stopped guard reads nothing; the pipe holds hundreds of orders.
	switch err := p.orders.send(o, time.Now().Add(time.Second)); {
	case errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%s %q: %w", what, p.name, os.ErrProcessDone)
	case err != nil:
		return fmt.Errorf("%s %q: order to the guard: %w", what, p.name, err)
	}
	return nil
}

// end returns the instant by which all must be over. The caller holds mu.
func (p *Process) end() time.Duration {
	if p.watch.stopping {
		return p.watch.killAt
	}
	return p.watch.deadline
}

// Wait returns when the command and all its descendants are gone. It may be
// called more than once. The error is nil when the guard did its duty, whatever
// the exit code; else it wraps [ErrSurvivors] or [ErrGuardDied].
func (p *Process) Wait() (Status, error) {
	<-p.done
	return p.status, p.err
}
