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
	return fmt.Sprintf("%s: %s of %s (pid %d, guard %d) wrote %d lines with token %d from %v to %v of the boot clock, when %d had begun",
		o.workerType, o.role, o.instance, o.pid, o.guard, o.lines, o.older, o.first, o.last, o.newer)
}

// busy is how late a guard may be on a machine that is busy, as long as no other
// command has begun: that would be an overlap.
const busy = 250 * ms

// judgeOutside does the same with work outside of its window, and separates work that
// was only a little late. Nothing excuses work that began early, or without a grant.
func judgeOutside(found []outside, strikes []*strike) (expected, late, bugs []outside) {
	for _, o := range found {
		excused := slices.ContainsFunc(o.guards, func(guard int) bool { return helpless(strikes, guard, o.last-o.late, o.last) })
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

// turn is what one command of a worker type wrote.
type turn struct {
	line // the first

	first, last time.Duration
}

// turnsOf splits the log of one worker type by commands, and reports what is wrong
// with their order: a command that writes when another has begun, in the file or by
// the clock, or that has a lower token. (One token may have several commands in a row:
// a command that was stopped, and whose lease was extended after all, is started
// again.)
func turnsOf(lines []line) (turns []*turn, wrong []string) {
	type process struct {
		pid   int
		token int64
	}
	known := map[process]*turn{}
	reported := map[*turn]bool{}
	for _, l := range lines {
		if l.role == asHarness {
			continue
		}
		bad := func(format string, args ...any) {
			wrong = append(wrong, l.workerType+": "+fmt.Sprintf(format, args...))
		}
		me := process{l.pid, l.token}
		t, n := known[me], len(turns)
		switch {
		case t == nil:
			t = &turn{line: l, first: l.boot}
			if n > 0 {
				before := turns[n-1]
				if l.boot <= before.last {
					bad("%v began when %v had not ended", t, before)
				}
				if l.token < before.token || l.token == before.token && l.instance != before.instance {
					bad("%v began after %v", t, before)
				}
			}
			known[me] = t
			turns = append(turns, t)
		case t != turns[n-1] && !reported[t]:
			reported[t] = true
			bad("%v wrote on at %v of the boot clock, when %v had begun", t, l.boot, turns[n-1])
		}
		t.last = max(t.last, l.boot)
	}
	return turns, wrong
}

func (t *turn) String() string {
	return fmt.Sprintf("%s (pid %d, token %d, from %v to %v of the boot clock)", t.instance, t.pid, t.token, t.first, t.last)
}
