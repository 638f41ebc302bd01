package workerlease

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Score makes a check for Options.Eligible of a health score from 0 (ill) to 1 (well):
//
//	options.Eligible = (&workerlease.Score{Of: health}).Eligible
//
// A score that goes up and down between Minimum and Recovery changes nothing, so it doesn't make
// the lease go to and fro. Use one Score for each worker, and don't change it while that leases.
type Score struct {
	// Of returns the score. It is called as Options.Eligible is. An error makes the worker
	// ineligible, and so does what isn't 0 … 1: until the next score, which then counts as if there had been no
	// error. Required.
	Of func(ctx context.Context) (float64, error)
	// Minimum is the least score of a worker that is eligible: more than 0, 1 at most. Default: 0.8.
	Minimum float64
	// Recovery is the least score with which a worker becomes eligible again after one below Minimum: Minimum … 1.
	// Default: halfway from Minimum to 1, which is 0.9 with the default of that.
	Recovery float64

	mu  sync.Mutex
	low bool // the newest score that was not between the two was below Minimum
}

// defaultMinimum is that of Score.
const defaultMinimum = 0.8

// Eligible is nil if the worker is eligible by its score. It may be called from any goroutine.
func (s *Score) Eligible(ctx context.Context) error {
	least, again, err := s.bounds()
	if err != nil {
		return err
	}
	score, err := s.Of(ctx)
	if err == nil {
		err = ctx.Err() // An answer that comes too late was an error.
	}
	// An error is no score. If it counted as a low one, all workers whose scores are below Recovery would be
	// out for good after one moment in which nothing could be measured.
	switch {
	case err != nil:
		return err
	case !(score >= 0 && score <= 1): // Also if it is no number.
		return fmt.Errorf("health score %v: must be 0 … 1", score)
	}
	if w, ok := ctx.Value(scored{}).(*WorkerLease); ok {
		w.noteScore(score)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case score < least:
		s.low = true
		return fmt.Errorf("health score %.2f is below %.2f", score, least)
	case s.low && score < again:
		return fmt.Errorf("health score %.2f is not back at %.2f", score, again)
	}
	s.low = false
	return nil
}

// bounds are the scores that decide.
func (s *Score) bounds() (least, again float64, err error) {
	if s == nil {
		return 0, 0, errors.New("the Score is nil")
	}
	if least = s.Minimum; least == 0 {
		least = defaultMinimum
	}
	if again = s.Recovery; again == 0 {
		again = least + (1-least)/2
	}
	switch {
	case s.Of == nil:
		return 0, 0, errors.New("Score.Of is not set")
	case !(least > 0 && least <= 1):
		return 0, 0, fmt.Errorf("Score.Minimum is %v: must be more than 0, and 1 at most", s.Minimum)
	case !(again >= least && again <= 1):
		return 0, 0, fmt.Errorf("Score.Recovery is %v: must be Score.Minimum (%v) … 1", s.Recovery, least)
	}
	return least, again, nil
}
