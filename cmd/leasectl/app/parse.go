package app

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
)

// number reads a whole number within bounds.
func number(least, most int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		return n, nil
	}
}

// attempts reads how often a slot is tried at most.
func attempts(s string) (int, error) {
	n, err := number(1, store.MaxAttempt)(s)
	if err != nil {
		return 0, fmt.Errorf("%w: leave it out to try a slot as long as it lasts", err)
	}
	return n, nil
}

// duration reads a duration within bounds.
func duration(least, most time.Duration) func(string) (time.Duration, error) {
	return func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return 0, errors.New("must be a duration such as 500ms, 90s, 5m or 1h30m")
		case d < least || d > most:
			return 0, fmt.Errorf("must be from %v to %v", least, most)
		}
		return d, nil
	}
}

// oneOf reads one of some words.
func oneOf(words ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", fmt.Errorf("must be one of %q", words)
		}
		return s, nil
	}
}

// anyDuration reads a duration; its bounds are checked with the other options.
func anyDuration(s string) (time.Duration, error) { return duration(math.MinInt64, math.MaxInt64)(s) }

// nonZero is anyDuration where zero isn't a value, but stands for the default.
func nonZero(s string) (time.Duration, error) {
	d, err := anyDuration(s)
	if err == nil && d == 0 {
		return 0, errors.New("must not be 0; leave the option out for the default")
	}
	return d, err
}

// wholeNumber reads a number; its bounds are checked with the other options.
func wholeNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, errors.New("must be a whole number")
	}
	return n, nil
}

// nonEmpty reads a text.
func nonEmpty(s string) (string, error) {
	if s == "" {
		return "", errors.New("must not be empty; leave the option out for the default")
	}
	return s, nil
}

// workerType reads a worker type.
func workerType(s string) (string, error) {
	if err := store.CheckWorkerType(s); err != nil {
		return "", reason(err, store.ErrInvalid.Error(), fmt.Sprintf("worker type %.70q", s), "…")
	}
	return s, nil
}

// tieBreak reads --tie-break.
func tieBreak(s string) (priority.TieBreak, error) {
	t, err := priority.ParseTieBreak(s)
	if err != nil {
		return t, reason(err, fmt.Sprintf("tie-break %q", s))
	}
	return t, nil
}

// reason is an error without its beginnings: the option and its value, which are named
// already.
func reason(err error, beginnings ...string) error {
	text := err.Error()
	for _, b := range beginnings {
		text = strings.TrimPrefix(strings.TrimPrefix(text, b), ": ")
	}
	return errors.New(text)
}
