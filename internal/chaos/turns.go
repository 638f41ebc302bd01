//go:build linux

package main

import (
	"fmt"
	"time"
)

// turn is what one command of a worker type wrote.
type turn struct {
	instance    string
	pid         int
	token       int64
	start, end  int64 // of the slot in which it was started: Unix ms of store time
	first, last time.Duration
	outcome     string // its last event
}

// turnsOf takes the log of one worker type apart by commands, and says what is wrong
// with their order: one that writes when another has begun, in the file or by the
// clock, or that has a lower token. (One token may have several commands in a row: a
// command that was told to end, and whose lease was extended after all, is started
// again.)
func turnsOf(lines []line) (turns []*turn, wrong []string) {
	type process struct {
		pid   int
		token int64
	}
	known := map[process]*turn{}
	told := map[*turn]bool{}
	for _, l := range lines {
		if l.role == asHarness {
			continue
		}
		me := process{l.pid, l.token}
		t, n := known[me], len(turns)
		switch {
		case t == nil:
			t = &turn{instance: l.instance, pid: l.pid, token: l.token, start: l.start, end: l.end, first: l.boot}
			if n > 0 {
				before := turns[n-1]
				if l.boot <= before.last {
					wrong = append(wrong, fmt.Sprintf("%s: %v began when %v had not ended", l.workerType, t, before))
				}
				if l.token < before.token || l.token == before.token && l.instance != before.instance {
					wrong = append(wrong, fmt.Sprintf("%s: %v began after %v", l.workerType, t, before))
				}
			}
			known[me] = t
			turns = append(turns, t)
		case t != turns[n-1] && !told[t]:
			told[t] = true
			wrong = append(wrong, fmt.Sprintf("%s: %v wrote on at %v of the boot clock, when %v had begun", l.workerType, t, l.boot, turns[n-1]))
		}
		t.last, t.outcome = max(t.last, l.boot), l.event
	}
	return turns, wrong
}

func (t *turn) String() string {
	return fmt.Sprintf("%s (pid %d, token %d, from %v to %v of the boot clock)", t.instance, t.pid, t.token, t.first, t.last)
}
