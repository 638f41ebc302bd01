package supervise

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// job is a command that runs in each slot that is held.
type job struct {
	pacing
	Command

	// stdin, stdout and stderr are those of the command.
	stdin, stdout, stderr *os.File
	// news has the newest extension of a lease, until it is taken.
	news chan workerlease.Lease
	// storeTime is a lower bound of store time.
	storeTime func() time.Time
	kept      kept
}

// run runs the command for one lease, and for each slot of it if it goes on from one
// to the next. When it returns, the whole process tree is gone: only then is the
// lease released, if leasing is stopped. See [job.hold] for processes that can't be killed.
func (j *job) run(ctx context.Context, l workerlease.Lease) {
	for {
		j.look(&l)
		e := j.under(ctx, &l, l.Slot)
		switch {
		case e.failed():
			l.FailedWith(e.failure())
		case e.succeeded():
			l.Succeeded()
		}
		if e.held || !j.again(ctx, &l, e) {
			return
		}
	}
}

// extended takes note of how a lease goes on.
func (j *job) extended(l workerlease.Lease) {
	select {
	case <-j.news: // older ones
	default:
	}
	j.news <- l
}

// look brings a lease up to date. News of an earlier lease is dropped.
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

// ending is how a command came to its end.
type ending struct {
	// Status is zero if the command wasn't started. The error is that of starting
	// it, or of its guard.
	guard.Status

	err error
	// took is how long it ran.
	took time.Duration
	// told is the newest end of the lease that the guard knew.
	told time.Time
	// held is set when processes of the command could not be killed.
	held bool
}

// cut reports whether the end of the lease cut the command short.
func (e ending) cut() bool {
	return e.Reason == guard.DeadlineReached || errors.Is(e.err, guard.ErrTooLate)
}

// failed reports that the command ended by itself, and not with exit code 0, or could not be started.
func (e ending) failed() bool {
	if e.cut() || e.Reason == guard.Stopped || e.Reason == guard.Killed {
		return false
	}
	return e.err != nil || e.ExitCode() != 0
}

// succeeded reports that the command ended by itself with exit code 0. One that was told to end has neither failed nor
// succeeded, unless it is a job: then its exit code alone says so.
func (e ending) succeeded() bool {
	return e.Reason == guard.Exited && e.err == nil && e.ExitCode() == 0
}

// under runs the command under a lease, for a slot, until it ends or must end. An
// extension of the lease puts the latter off.
func (j *job) under(ctx context.Context, l *workerlease.Lease, slot slots.Slot) ending {
	// In this order: a pause in between makes the deadline earlier, never later.
	now := guard.Boottime()
	left := l.Remaining()
	r := running{grace: j.graceOf(*l, left), deadline: now + left - killTime(left), until: l.Expiry, ended: make(chan struct{})}
	began := *l
	began.Slot = slot
	p, err := guard.Start(guard.Command{
		Path: j.Name, Args: j.Args, Env: environ(j.Env, began),
		Stdin: j.stdin, Stdout: j.stdout, Stderr: j.stderr,
		Deadline: r.deadline, Grace: r.grace, Notice: j.noticeOf(*l, left, r.grace),
	})
	if err != nil {
		j.Log.NotStarted(began, err)
		return ending{err: err, took: guard.Boottime() - now, told: l.Expiry, held: j.hold(began, err)}
	}
	r.Process = p
	j.Log.Started(began, p.PID(), p.Means())
	told := make(chan struct{})
	go func() {
		defer close(told)
		j.tell(ctx, l, &r)
	}()
	status, err := p.Wait()
	took := guard.Boottime() - now
	close(r.ended)
	<-told
	j.Log.Ended(began, status, err)
	return ending{status, err, took, r.until, j.hold(began, err)}
}

// running is the command while it runs.
type running struct {
	*guard.Process

	grace, deadline time.Duration
	until           time.Time // the end of the lease that the deadline is for
	ended           chan struct{}
}

// tell passes extensions of the lease, and its early end, on to the command's guard. At
// its normal end nothing is passed on: the guard knows the deadline, and kills even if
// this process is stopped.
func (j *job) tell(ctx context.Context, l *workerlease.Lease, r *running) {
	urgent := j.Urgent
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
			j.extend(*l, r)
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
		r.deadline, r.until = deadline, l.Expiry
	case errors.Is(err, guard.ErrTooLate):
		j.Log.ExtendedLate(l)
	case !errors.Is(err, os.ErrProcessDone):
		j.Log.Trouble("extend", err)
	}
}

// again waits until the command is to be started once more under a lease that goes
// on, and reports whether it is: if it was cut short, as soon as there is time
// again; if it ended by itself, when the next slot begins.
func (j *job) again(ctx context.Context, l *workerlease.Lease, e ending) bool {
	switch {
	case e.cut():
		return j.extends() && j.timeAgain(ctx, l, e)
	case j.Options.Continuous:
		return j.nextSlot(ctx, l)
	}
	return false
}

// timeAgain waits until the lease that cut a command short goes on after all, long
// enough for the command to be worth starting again.
func (j *job) timeAgain(ctx context.Context, l *workerlease.Lease, e ending) bool {
	for !l.Expiry.After(e.told) || !j.worth(*l) {
		select {
		case <-ctx.Done():
			return false
		case n := <-j.news:
			j.take(l, n)
		}
	}
	return ctx.Err() == nil
}

// worth reports whether a command that is started now has some time before it is told
// to end.
func (j *job) worth(l workerlease.Lease) bool {
	left := l.Remaining()
	return left-killTime(left) > 2*j.noticeOf(l, left, j.graceOf(l, left))
}

// nextSlot waits for the beginning of the next slot of the lease.
func (j *job) nextSlot(ctx context.Context, l *workerlease.Lease) bool {
	ended := j.storeTime()
	for {
		var begins <-chan time.Time
		if l.Slot.Start.After(ended) {
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

// order gives the guard an order. A guard that can't be reached still has its deadline,
// and kills at it.
func (j *job) order(what string, give func() error) {
	if err := give(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		j.Log.Trouble(what, err)
	}
}
