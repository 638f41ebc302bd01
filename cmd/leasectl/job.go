package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/workerlease"
)

// job is the command that runs in each slot that is held.
type job struct {
	pacing

	name string
	args []string
	env  []string

	stdin, stdout, stderr *os.File
	journal               journal
	// urgent is closed when the command must be killed without a grace.
	urgent <-chan struct{}
	// news is the newest extension of a lease, unless it was looked at.
	news chan workerlease.Lease
	// storeTime is what store time is at least.
	storeTime func() time.Time
}

// run runs the command for one lease, and for each slot of it if it goes on from one
// to the next. When it returns, the whole process tree is gone: only then is the
// lease released, if leasing is stopped.
func (j *job) run(ctx context.Context, l workerlease.Lease) {
	for {
		j.look(&l)
		cut := j.once(ctx, &l)
		if !j.again(ctx, &l, cut) {
			return
		}
	}
}

// extended is told how a lease goes on.
func (j *job) extended(l workerlease.Lease) {
	select {
	case <-j.news: // older ones
	default:
	}
	j.news <- l
}

// look brings a lease up to date, unless what is new is about one before.
func (j *job) look(l *workerlease.Lease) {
	select {
	case n := <-j.news:
		j.take(l, n)
	default:
	}
}

func (j *job) take(l *workerlease.Lease, n workerlease.Lease) {
	if n.Token == l.Token && n.Expiry.After(l.Expiry) {
		*l = n
	}
}

// once runs the command until it ends or must end, which l may yet put off. It
// reports whether the end of the lease cut it short.
func (j *job) once(ctx context.Context, l *workerlease.Lease) (cut bool) {
	// In this order: a pause in between makes the deadline earlier, never later.
	now := guard.Boottime()
	left := l.Remaining()
	r := running{grace: j.graceOf(*l, left), deadline: now + left - killTime(left), ended: make(chan struct{})}
	p, err := guard.Start(guard.Command{
		Path: j.name, Args: j.args, Env: environ(j.env, *l),
		Stdin: j.stdin, Stdout: j.stdout, Stderr: j.stderr,
		Deadline: r.deadline, Grace: r.grace, Notice: j.noticeOf(*l, left, r.grace),
	})
	if err != nil {
		j.journal.notStarted(*l, err)
		return errors.Is(err, guard.ErrTooLate)
	}
	r.Process = p
	began := *l
	j.journal.started(began, p.PID())
	told := make(chan struct{})
	go func() {
		defer close(told)
		j.tell(ctx, l, r)
	}()
	status, err := p.Wait()
	close(r.ended)
	<-told
	j.journal.ended(began, status, err)
	return status.Reason == guard.DeadlineReached
}

// running is the command while it runs.
type running struct {
	*guard.Process

	grace, deadline time.Duration
	ended           chan struct{}
}

// tell passes extensions of the lease, and its end, on to the command. The normal
// end needs no word: the guard knows the deadline, and kills even if this process
// is stopped.
func (j *job) tell(ctx context.Context, l *workerlease.Lease, r running) {
	urgent := j.urgent
	over := ctx.Done()
	for {
		select {
		case <-r.ended:
			return
		case <-urgent:
			urgent, over = nil, nil
			j.order("kill", r.Kill)
		case <-over:
			over = nil
			if errors.Is(context.Cause(ctx), workerlease.ErrStopped) {
				j.order("stop", r.Stop)
			} else {
				j.order("kill", r.Kill)
			}
		case n := <-j.news:
			j.take(l, n)
			j.extend(*l, &r)
		}
	}
}

// extend moves the deadline to where the lease ends now.
func (j *job) extend(l workerlease.Lease, r *running) {
	now := guard.Boottime()
	left := l.Remaining()
	deadline := now + left - killTime(left)
	if left <= 0 || deadline <= r.deadline {
		return // The lease has ended, or this was known at the start.
	}
	err := r.Extend(deadline, j.noticeOf(l, left, r.grace))
	switch {
	case err == nil:
		r.deadline = deadline
	case errors.Is(err, guard.ErrTooLate):
		j.journal.extendedLate(l)
	case !errors.Is(err, os.ErrProcessDone):
		j.journal.trouble("extend the time of the command", err)
	}
}

// again waits until the command is to be started once more under a lease that goes
// on, and reports whether it is: if it was cut short, as soon as there is time
// again; if it ended by itself, when the next slot begins.
func (j *job) again(ctx context.Context, l *workerlease.Lease, cut bool) bool {
	if !j.extends() || !cut && !j.continuous {
		return false
	}
	ended := j.storeTime()
	for {
		var begins <-chan time.Time
		switch {
		case cut && j.worth(*l):
			return true
		case !cut && l.Slot.Start.After(ended):
			early := l.Slot.Start.Sub(j.storeTime())
			if early <= 0 {
				return true
			}
			begins = time.After(early)
		}
		select {
		case <-ctx.Done():
			return false
		case n := <-j.news:
			j.take(l, n)
		case <-begins:
		}
	}
}

// worth reports whether a command that is started now would have some time before
// it is told to end.
func (j *job) worth(l workerlease.Lease) bool {
	left := l.Remaining()
	return left-killTime(left) > 2*j.noticeOf(l, left, j.graceOf(l, left))
}

// order gives the guard an order. If it can't be told, it still has its
// deadline, and our own view of it is enforced.
func (j *job) order(what string, give func() error) {
	if err := give(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		j.journal.trouble(what+" the command", err)
	}
}

// urgently is closed at the second signal or, for a tethered worker, when its
// standard input ends: then whoever started it is gone.
func (a *app) urgently(tethered bool) <-chan struct{} {
	if !tethered {
		return a.signals.urgent
	}
	urgent := make(chan struct{})
	go func() {
		defer close(urgent)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = io.Copy(io.Discard, a.stdin)
		}()
		select {
		case <-gone:
		case <-a.signals.urgent:
		}
	}()
	return urgent
}
