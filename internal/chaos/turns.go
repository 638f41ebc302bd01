//go:build linux

package main

import (
	"fmt"
	"time"
)

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
