package main

import (
	"context"

	"github.com/robfig/cron/v3"

	"github.com/slotlease/slotlease/workerlease"
)

// OnlyHolder makes jobs run only while w holds the lease, and skips them otherwise.
// The lease is not released before a job has returned. A [Leased] job is told when
// the lease ends; any other must surely be done in the time that a part of the slot
// (FailoverWithin) lasts, or it runs beside that of the next holder.
func OnlyHolder(ctx context.Context, w *workerlease.WorkerLease, logger cron.Logger) cron.JobWrapper {
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			held, err := w.RunIfHeld(ctx, func(ctx context.Context, l workerlease.Lease) error {
				if leased, ok := job.(Leased); ok {
					return leased(ctx, l)
				}
				job.Run()
				return nil
			})
			switch {
			case err != nil:
				logger.Error(err, "job")
			case !held:
				logger.Info("skip: this worker doesn't hold the lease")
			}
		})
	}
}

// Leased is a job that stops when its context ends, with the lease, and passes the
// lease's token to what it writes to. OnlyHolder must be the last in its chain.
type Leased workerlease.Task

// Run makes it a cron.Job. It is OnlyHolder that runs it.
func (Leased) Run() { panic("a Leased job needs OnlyHolder as the last in its chain") }
