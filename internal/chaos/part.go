//go:build linux

package main

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"os/signal"
	"syscall"
	"time"
)

// plain is a command that writes until it is told to end, and ends then.
func (s *sharedLog) plain(l line) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if err := s.write(l, began); err != nil {
		return err
	}
	if err := s.beat(ctx, l); err != nil {
		return err
	}
	return s.write(l, told)
}

// beat writes again and again, until the context ends.
func (s *sharedLog) beat(ctx context.Context, l line) error {
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	for {
		select {
		case <-beats.C:
			if err := s.write(l, beat); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// chore is what a task is, by its worker type and token: so the harness knows it, too.
type chore struct {
	takes time.Duration // from its first line on
	fails bool
}

func choreOf(l line) chore {
	h := fnv.New64a()
	_, _ = h.Write([]byte(l.workerType))
	random := rand.New(rand.NewPCG(uint64(l.token), h.Sum64()))
	return chore{takes: 100*ms + time.Duration(random.Int64N(int64(800*ms))), fails: random.IntN(8) == 0}
}

// errTask makes the exit code of a task that isn't done.
var errTask = errors.New("the task is not done")

// task is a command that is done when it ends by itself, unless it fails.
func (s *sharedLog) task(l line) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	c := choreOf(l)
	limited, cancel := context.WithTimeout(ctx, c.takes)
	defer cancel()
	if err := s.write(l, began); err != nil {
		return err
	}
	if err := s.beat(limited, l); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return errors.Join(s.write(l, told), errTask)
	case c.fails:
		return errors.Join(s.write(l, failed), errTask)
	}
	return s.write(l, ended)
}
