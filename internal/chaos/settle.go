//go:build linux

package main

import (
	"context"
	"io"
	"os"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// settle sees to it that every worker type works again when the faults are over,
// measures the control worker, and ends all in order.
func (s *scene) settle(ctx context.Context) (err error) {
	if err := s.await(ctx, "all workers are ready again", s.ready); err != nil {
		s.bad("%v", err)
	}
	info, err := os.Stat(s.log())
	if err != nil {
		return err
	}
	if err := s.await(ctx, "every worker type works again", func() bool { return s.worksSince(info.Size()) }); err != nil {
		s.bad("%v", err)
	}
	control := s.control()
	if err := s.await(ctx, "the control worker rests", func() bool { return familyOf(control.pid()).guard == 0 }); err != nil {
		return err
	}
	if s.beyond, err = usageOf(control.pid()); err != nil {
		return err
	}
	if s.beyond.goroutines, err = control.dump(); err != nil {
		return err
	}
	s.leave(ctx, s.all())
	return nil
}

// worksSince reports whether two commands of each worker type have begun in the
// part of the log from an offset on: the first may be of a lease that was held
// before.
func (s *scene) worksSince(offset int64) bool {
	f, err := os.Open(s.log())
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return false
	}
	c, err := readLog(f)
	return err == nil && !slices.ContainsFunc(cast, func(t workerType) bool { return len(c.works[t.name]) < 2 })
}

// records reads the ledger of a worker type, the oldest record first.
func (s *scene) records(ctx context.Context, t workerType) ([]store.Record, time.Time, error) {
	l, err := s.stage.open(ctx, t)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer func() { _ = l.Close(ctx) }()
	zero, err := offsetOf(ctx, l)
	if err != nil {
		return nil, zero, err
	}
	records, _, err := l.Tail(ctx, t.name, 100_000)
	return s.archive.all(t, records), zero, err
}
