package supervise

import (
	"context"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// OnExit is what happens when a command ends by itself while its lease is held.
type OnExit string

// What may happen. The text is that of the flag.
const (
	// Default: Release after a failure; after exit code 0 Restart if leases are continuous, else Keep.
	Default OnExit = ""
	// Release gives the rest of the slot to others.
	Release OnExit = "release"
	// Restart starts the command again, after a wait.
	Restart OnExit = "restart"
	// Keep keeps the lease, and starts nothing before the next slot.
	Keep OnExit = "keep"
)

// The waits before a command is started again: each is twice as long as the one before, until a run has taken as
// long as the longest.
const (
	firstWait = time.Second
	mostWait  = 30 * time.Second
)

// run runs the command under one lease, until that ends or is given back. When it returns, the whole process tree is
// gone: only then is the lease released. See [job.hold] for processes that can't be killed.
func (j *job) run(ctx context.Context, l workerlease.Lease) error {
	for wait := firstWait; ; {
		j.look(&l)
		e := j.under(ctx, &l)
		switch {
		case e.held:
			return context.Cause(ctx) // Leasing has ended.
		case e.cut() && j.extends() && j.timeAgain(ctx, &l, e):
			continue
		case !e.failed() && !e.succeeded():
			<-ctx.Done() // It was told to end, or there was no time to start it.
			return context.Cause(ctx)
		}
		then := j.then(e)
		switch {
		case then == Release && e.failed():
			return e.failure()
		case then == Release:
			l.Succeeded()
			return workerlease.ErrGiveBack
		case e.failed():
			l.FailedWith(e.failure())
		case then == Restart:
			l.Succeeded()
		}
		if then == Keep {
			return nil
		}
		if e.took >= mostWait {
			wait = firstWait
		}
		j.Log.Restarting(l, wait)
		again := false
		l.Rest(func() { again = j.rest(ctx, &l, wait) })
		if !again {
			return context.Cause(ctx)
		}
		wait = min(2*wait, mostWait)
	}
}

// then is what follows an ending.
func (j *job) then(e ending) OnExit {
	switch {
	case j.OnExit != Default:
		return j.OnExit
	case e.failed():
		return Release
	case j.Options.Continuous:
		return Restart
	}
	return Keep
}

// rest waits, and then until the lease lasts long enough for the command to be worth starting. It reports whether it does.
func (j *job) rest(ctx context.Context, l *workerlease.Lease, wait time.Duration) bool {
	over := time.After(wait)
	for {
		select {
		case <-ctx.Done():
			return false
		case n := <-j.news:
			j.take(l, n)
		case <-over:
			return j.timeAgain(ctx, l, ending{})
		}
	}
}
