//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
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
	var ends []<-chan struct{}
	for _, w := range s.all() {
		if gone := w.retire(syscall.SIGTERM, endLeasectl); gone != nil {
			ends = append(ends, gone)
		}
	}
	for _, gone := range ends {
		select {
		case <-gone:
		case <-time.After(patience):
			s.bad("a leasectl doesn't end within %v of SIGTERM, without any fault", patience)
		}
	}
	if err := s.await(ctx, "nothing is left behind", func() bool { return s.leftBehind() == "" }); err != nil {
		s.bad("%v: %s", err, s.leftBehind())
	}
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

// leftBehind tells of the processes that still run below this one, and should not.
func (s *scene) leftBehind() string {
	var found []string
	for _, pid := range s.spawner.left() {
		if text := commandLine(pid); strings.Contains(text, guardName) || strings.Contains(text, s.program) || strings.HasSuffix(text, "\x00"+workCommand+"\x00") {
			found = append(found, fmt.Sprintf("pid %d (%s)", pid, strings.ReplaceAll(strings.TrimRight(text, "\x00"), "\x00", " ")))
		}
	}
	return strings.Join(found, ", ")
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
