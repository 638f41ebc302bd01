//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// wakeUp is how long a guard may take, once it runs again, to kill what is below
// it, on a machine that is busy.
const wakeUp = 500 * ms

// span is a stretch of the boot clock.
type span struct{ begin, end time.Duration }

// helpless are the stretches, by guard, in which neither the guard nor its
// leasectl could end the work: both were stopped, or the one was killed while the
// other was stopped. Guards that are stopped alone are not among them, as their
// leasectl acts for them.
func helpless(strikes []*strike) map[int][]span {
	found := map[int][]span{}
	for _, s := range strikes {
		if s.guard != 0 && (s.Kind == stopBoth || s.Kind == stopTree || s.Kind == killAbove) {
			end := s.End
			if end < endless-wakeUp {
				end += wakeUp
			}
			found[s.guard] = append(found[s.guard], span{s.Begin, end})
		}
	}
	for guard, spans := range found {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
		merged := spans[:1]
		for _, s := range spans[1:] {
			if last := &merged[len(merged)-1]; s.begin <= last.end {
				last.end = max(last.end, s.end)
			} else {
				merged = append(merged, s)
			}
		}
		found[guard] = merged
	}
	return found
}

// within reports whether one of the spans covers a stretch.
func within(spans []span, begin, end time.Duration) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.begin <= begin && end <= s.end })
}

// judgeOverlaps separates overlaps that nothing could prevent from bugs.
func judgeOverlaps(overlaps []*overlap, strikes []*strike) (expected, bugs []*overlap) {
	spans := helpless(strikes)
	for _, o := range overlaps {
		if within(spans[o.guard], o.first, o.last) {
			expected = append(expected, o)
		} else {
			bugs = append(bugs, o)
		}
	}
	return expected, bugs
}

func (o *overlap) String() string {
	return fmt.Sprintf("%s: %s of %s (pid %d, guard %d) wrote %d lines with token %d from %v to %v of the boot clock, when %d had begun",
		o.workerType, o.role, o.instance, o.pid, o.guard, o.lines, o.older, o.first, o.last, o.newer)
}

// busy is how late a guard may be on a machine that is busy, as long as no other
// command has begun: that would be an overlap.
const busy = 250 * ms

// judgeOutside does the same with work outside of its window, and separates work that
// was only a little late. Nothing excuses work that began early, or without a grant.
func judgeOutside(found []outside, strikes []*strike) (expected, late, bugs []outside) {
	spans := helpless(strikes)
	for _, o := range found {
		windowEnd := o.last - o.late
		excused := slices.ContainsFunc(o.guards, func(guard int) bool { return within(spans[guard], windowEnd, o.last) })
		switch {
		case !o.granted || o.early > 0:
			bugs = append(bugs, o)
		case excused:
			expected = append(expected, o)
		case o.late <= busy:
			late = append(late, o)
		default:
			bugs = append(bugs, o)
		}
	}
	return expected, late, bugs
}

func (o outside) String() string {
	if !o.granted {
		return fmt.Sprintf("%s: %s worked with token %d, which it was not granted", o.workerType, o.instance, o.token)
	}
	return fmt.Sprintf("%s: %s (guards %v) worked with token %d %v before its window and %v after it, until %v of the boot clock",
		o.workerType, o.instance, o.guards, o.token, o.early, o.late, o.last)
}

// judgeOrder finds commands that began with a token no higher than the one before.
// Those that began late because they were stopped show as overlaps, too.
func judgeOrder(c *chronicle, expected []*overlap) (wrong []string) {
	for _, works := range c.works {
		var highest int64
		for _, w := range works {
			if w.commands > 1 {
				wrong = append(wrong, fmt.Sprintf("%s: %d commands began with token %d", w.workerType, w.commands, w.token))
			}
			late := slices.ContainsFunc(expected, func(o *overlap) bool { return o.workerType == w.workerType && o.older == w.token && o.began })
			if w.token <= highest && !late {
				wrong = append(wrong, fmt.Sprintf("%s: %s began with token %d after one with %d", w.workerType, w.instance, w.token, highest))
			}
			highest = max(highest, w.token)
		}
	}
	return wrong
}

// unfenced reports that the fence was never asked although commands overlapped for
// long: then it proves nothing.
func unfenced(c *chronicle, expected []*overlap) bool {
	var long time.Duration
	for _, o := range expected {
		if o.role == asCommand {
			long += o.last - o.first
		}
	}
	return long > 10*writeEvery && c.refused == 0
}
