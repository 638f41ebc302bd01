//go:build unix && !aix

package guard

import (
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"time"
)

// Start runs a command under a guard and returns when it runs. The error names
// the command and the cause: [ErrTooLate], [ErrUnsaid], several invalid fields at once, or
// why the system can't execute it. It is also an error if less than Grace, or
// Notice, is left: the command would be told to end while it starts.
//
// Wait need not be called: the end is noticed, and the guard reaped, without it.
func Start(c Command) (*Process, error) {
	p, err := start(c)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Path, err)
	}
	return p, nil
}

func start(c Command) (*Process, error) {
	first, err := c.order()
	if err != nil {
		return nil, err
	}
	w := watch{deadline: first.Deadline, notice: first.Notice, grace: first.Grace}
	if now := Boottime(); w.at(now) != letRun {
		return nil, fmt.Errorf("%v left, grace %v: %w", max(0, c.Deadline-now).Round(time.Millisecond), first.Notice, ErrTooLate)
	}
	p, err := launch(c, w)
	if err != nil {
		return nil, err
	}
	// A guard that is stopped, or starved, must not hold the program for ever.
	limit := time.Now().Add(c.Deadline - Boottime())
	_ = p.reports.SetReadDeadline(limit)
	return p.confirm(p.orders.send(first, limit))
}

// launch starts a guard that has no order yet.
func launch(c Command, w watch) (*Process, error) {
	due, err := newAlarm()
	if err != nil {
		return nil, err
	}
	g, pipe, reports, err := startGuard(c.Stdin, c.Stdout, c.Stderr)
	if err != nil {
		due.stop()
		return nil, err
	}
	return &Process{
		name: c.Path, guard: g, orders: newOrders(pipe), reports: reports, due: due, done: make(chan struct{}), watch: w,
	}, nil
}

// confirm waits until the guard says that the command runs. The error is that of giving it the order to start it.
func (p *Process) confirm(sent error) (*Process, error) {
	decoder := gob.NewDecoder(p.reports)
	var r report
	if err := decoder.Decode(&r); err != nil {
		if sent == nil && errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, p.abandon(ErrUnsaid)
		}
		return nil, p.abandon(cmp.Or(sent, err))
	}
	if err := r.failure(); err != nil {
		return nil, both(err, p.abandon(nil))
	}
	if r.Ended {
		err := both(r.Survivors.error(), p.abandon(nil))
		return nil, both(fmt.Errorf("%v: %w", r.Status.Reason, ErrUnsaid), err)
	}
	_ = p.reports.SetReadDeadline(time.Time{})
	p.pid, p.cgroup = r.PID, r.Cgroup
	p.due.set(p.watch.deadline)
	go p.attend(decoder)
	return p, nil
}

// abandon ends a guard that has not started a command, or doesn't say so. The error
// is the cause, and [ErrSurvivors] if the command may run after all.
func (p *Process) abandon(cause error) error {
	if errors.Is(cause, os.ErrDeadlineExceeded) {
		cause = ErrTooLate
	}
	p.orders.close()
	p.remains().backUp()
	p.guard.kill()
	awaitDeath(p.guard.pid())
	survived := p.remains().rescue().error()
	said := p.guard.reap()
	_ = p.reports.Close()
	p.due.stop()
	if cause != nil && !errors.Is(cause, ErrTooLate) && !errors.Is(cause, ErrUnsaid) {
		cause = fmt.Errorf("%w: %s: %w", ErrGuardDied, said, cause)
	}
	return both(cause, survived)
}
