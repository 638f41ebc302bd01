package supervise

import (
	"context"
	"errors"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/workerlease"
)

// Wanted is a job that is to be.
type Wanted struct {
	workerlease.Timing
	Command

	// Same is equal for two jobs that differ in nothing.
	Same string
}

// Changes are what Replace did, in numbers of jobs.
type Changes struct{ Unchanged, Changed, Added, Removed int }

// Why a job ends while others go on.
var (
	errRemoved = errors.New("no file has the job any more")
	errChanged = errors.New("the job has changed")
)

// Replace makes the jobs those that are wanted, whose worker types differ. One that is there as it is wanted goes on
// untouched. One that isn't wanted, or not like that, lets its run end, unless that is meant to go on from slot to slot;
// then its lease is released, and what is wanted begins in its place. The error is that of jobs which can't be
// started: the others are.
func (s *Jobs) Replace(ctx context.Context, wanted []Wanted) (c Changes, err error) {
	names := map[string]bool{}
	var begin []*job
	s.mu.Lock()
	for _, w := range wanted {
		name := w.Options.WorkerType
		names[name] = true
		switch j := s.all[name]; {
		case s.closed:
		case j == nil:
			c.Added++
			begin = append(begin, s.admitLocked(w))
		case j.same == w.Same && !j.leaves, j.next != nil && j.next.Same == w.Same:
			c.Unchanged++
		default:
			c.Changed++
			s.leaveLocked(ctx, j, &w)
		}
	}
	for name, j := range s.all {
		if !names[name] && (!j.leaves || j.next != nil) {
			c.Removed++
			s.leaveLocked(ctx, j, nil)
		}
	}
	s.mu.Unlock()
	for _, j := range begin {
		err = exit.Join(err, s.launch(ctx, j))
	}
	return c, err
}

// leaveLocked lets a job end after its run, and what is next come in its place. The caller holds mu.
func (s *Jobs) leaveLocked(ctx context.Context, j *job, next *Wanted) {
	j.next = next
	if j.leaves || s.closed {
		return
	}
	j.leaves = true
	s.ending.Go(func() { s.leave(ctx, j) })
}

// leave waits for the end of a job's run, ends the job, and starts what is next. When all are to end, it leaves it to that.
func (s *Jobs) leave(ctx context.Context, j *job) {
	<-j.begun
	idle := j.runs.bar()
	if !j.Options.Continuous && j.OnExit != Restart {
		select {
		case <-idle:
		case <-s.over:
			return
		}
	}
	s.mu.RLock()
	why := errRemoved
	if j.next != nil {
		why = errChanged
	}
	s.mu.RUnlock()
	if j.worker != nil {
		if err := j.end(ctx, nil, why, func() {}); err != nil {
			j.Log.Unended(err)
		}
		s.ending.Go(j.close) // What is next doesn't wait for it.
	}
	s.mu.Lock()
	delete(s.all, j.Options.WorkerType)
	var next *job
	if j.next != nil && !s.closed {
		next = s.admitLocked(*j.next)
	}
	s.mu.Unlock()
	if next != nil {
		if err := s.launch(ctx, next); err != nil {
			next.Log.Unbegun(err)
		}
	}
}
