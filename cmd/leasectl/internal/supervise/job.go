package supervise

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// job is a command that runs in each slot that is held.
type job struct {
	pacing
	Command

	same string         // as [Wanted.Same]
	also event.Observer // may be nil
	// news has the newest extension of a lease, until it is taken.
	news    chan event.Lease
	kept    kept
	runs    runs
	copying sync.WaitGroup // of output
	copies  atomic.Int32   // that go on

	begun  chan struct{}            // closed when the worker has begun, or can't be
	worker *workerlease.WorkerLease // nil: it hasn't begun. By mu of the jobs, as the rest.
	leaves bool                     // it ends after its run
	next   *Wanted                  // what then comes in its place; nil: nothing
}

// over ends what is kept for a job, once its worker begins nothing on the ledger any more. It waits for a few seconds until the
// output is passed on: its reader may have stopped reading. It doesn't wait if processes that could not be killed may write on.
func (j *job) over() {
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		j.copying.Wait()
	}()
	select {
	case <-passed:
	case <-j.kept.known.Done():
	case <-j.Urgent:
	case <-time.After(lastTime):
	}
	close(j.kept.over)
}

// extended takes note of how a lease goes on.
func (j *job) extended(l event.Lease) {
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

func (j *job) take(l *workerlease.Lease, n event.Lease) {
	if n.Token == l.Token && n.Expiry.After(l.Expiry) {
		l.Slot, l.Start, l.Expiry, l.Attempt, l.Missed = n.Slot, n.Start, n.Expiry, n.Attempt, n.Missed
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
	// late says that its job took longer than its time-out, and so has failed.
	late bool
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

// done reports that a job is done, however its command came to end.
func (e ending) done() bool { return e.Reason != 0 && e.ExitCode() == 0 && !e.late }

// succeeded reports that the command ended by itself with exit code 0. One that was told to end has neither failed nor
// succeeded, unless it is a job: then its exit code alone says so.
func (e ending) succeeded() bool {
	return e.Reason == guard.Exited && e.err == nil && e.ExitCode() == 0
}

// under runs the command under a lease until it ends or must end. An
// extension of the lease puts the latter off.
func (j *job) under(ctx context.Context, l *workerlease.Lease) ending {
	// In this order: a pause in between makes the deadline earlier, never later.
	now := guard.Boottime()
	left := l.Remaining()
	r := running{grace: j.graceOf(*l, left), deadline: now + left - killTime(left), until: l.Expiry, ended: make(chan struct{})}
	began := *l
	for len(j.Signals) > 0 {
		<-j.Signals // They came when no command ran.
	}
	p, passed, err := j.start(guard.Command{
		Path: j.Name, Args: j.Args, Env: environ(j.Env, began), Dir: j.Dir, User: j.User,
		Deadline: r.deadline, Grace: r.grace, Notice: j.noticeOf(*l, left, r.grace),
	})
	if err != nil {
		passed()
		j.wrote(l) // It may have begun.
	}
	switch {
	case errors.Is(err, guard.ErrUnsaid): // It was an attempt, too.
		status := guard.Status{Code: -1, Signal: syscall.SIGKILL, Reason: guard.DeadlineReached}
		j.Log.Ended(began, status, context.Cause(ctx), err)
		return ending{Status: status, err: err, took: guard.Boottime() - now, told: l.Expiry, held: j.hold(began, err)}
	case err != nil:
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
	passed()
	j.wrote(l)
	j.Log.Ended(began, status, context.Cause(ctx), err)
	return ending{Status: status, err: err, took: took, told: r.until, held: j.hold(began, err)}
}

// wrote tells what is kept of the output of a run that has ended.
func (j *job) wrote(l *workerlease.Lease) {
	if text := j.Output.End(); text != "" {
		l.Wrote(text)
	}
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
			if leavesGrace(context.Cause(ctx)) {
				j.order("stop", r.Stop)
			} else {
				j.order("kill", r.Kill)
			}
		case s := <-j.Signals:
			if s, ok := s.(syscall.Signal); ok {
				j.order("signal", func() error { return r.Signal(s) })
			}
		case n := <-j.news:
			if j.take(l, n); over != nil { // Else it was told to end.
				j.extend(*l, r)
			}
		}
	}
}

// leavesGrace reports whether a lease that ended early, with a cause, leaves the command its grace: the
// newest record still gives this worker the window, to whose end the guard keeps, and nothing is released
// before the command is gone. It does not where the clock or the record is in doubt, nor at the window's end.
func leavesGrace(cause error) bool {
	return slices.ContainsFunc([]error{
		workerlease.ErrStopped, workerlease.ErrPaused, workerlease.ErrDrained, workerlease.ErrAskedToRelease,
		workerlease.ErrIneligible, workerlease.ErrStalled, workerlease.ErrTimedOut,
	}, func(early error) bool { return errors.Is(cause, early) })
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

// order gives the guard an order. A guard that can't be reached still has its deadline,
// and kills at it.
func (j *job) order(what string, give func() error) {
	if err := give(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		j.Log.Trouble(what, err)
	}
}
