//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"
)

// wakeUp is how long a guard may take, once it runs again, to kill its command, on
// a machine that is busy.
const wakeUp = 500 * ms

// helpless reports whether, throughout a stretch of time, neither a guard nor its
// leasectl could end the work: both were stopped, or the one was killed while the other
// was stopped. A guard that is stopped alone doesn't count, because its leasectl acts
// for it.
func helpless(strikes []*strike, guard int, begin, end time.Duration) bool {
	for {
		i := slices.IndexFunc(strikes, func(s *strike) bool {
			until := after(s.End, wakeUp)
			return guard != 0 && s.guard == guard && slices.Contains([]kind{stopBoth, stopTree, killAbove}, s.Kind) && s.Begin <= begin && (until >= end || until > begin)
		})
		if i < 0 {
			return false
		}
		if begin = after(strikes[i].End, wakeUp); begin >= end {
			return true
		}
	}
}

// judgeOverlaps separates overlaps that nothing could prevent from bugs.
func judgeOverlaps(overlaps []*overlap, strikes []*strike) (expected, bugs []*overlap) {
	for _, o := range overlaps {
		if helpless(strikes, o.guard, o.first, o.last) {
			expected = append(expected, o)
		} else {
			bugs = append(bugs, o)
		}
	}
	return expected, bugs
}

func (o *overlap) String() string {
	return fmt.Sprintf("%s: %v wrote %d lines from %v to %v, when %v had begun", o.workerType, o.turn, o.lines, o.first, o.last, o.newer)
}

// unfenced reports that the fence was never asked although commands overlapped for
// long: then it proves nothing.
func unfenced(expected []*overlap, refused int) bool {
	var long time.Duration
	for _, o := range expected {
		if o.role == asCommand {
			long += o.last - o.first
		}
	}
	return long > 10*writeEvery && refused == 0
}
