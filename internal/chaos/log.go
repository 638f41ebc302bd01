//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// The events in the log.
const (
	began   = "begin"
	beat    = "beat"
	quit    = "quit"    // it ends by itself, before its time
	stopped = "stopped" // it ends because of a signal
	written = "written" // the fence accepted a write
	stale   = "stale"   // the fence refused one as stale
	unsure  = "unsure"  // the fence didn't answer
	ended   = "end"     // a task is done
	failed  = "fail"    // a task has failed
	marked  = "mark"    // the harness has seen a done record in the ledger
)

// The roles of the processes that write.
const (
	asCommand    = "command"
	asGrandchild = "grandchild" // detached by setsid
	asHarness    = "harness"
)

// line is one line of the log that all commands append to. All but boot stay the
// same for a process.
type line struct {
	event      string
	boot       time.Duration // CLOCK_BOOTTIME
	pid        int
	guard      int // the guard that must end it
	instance   string
	workerType string
	token      int64
	start, end int64 // of the slot: Unix ms of store time
	role       string
}

// append writes a line of 128 bytes. That divides a page of memory: a process that is
// killed can leave half a line only where its write goes from one page to the next.
func (l line) append(b []byte) []byte {
	text := fmt.Sprintf("%s %d %d %d %d %d %d %s %s %s", l.event, int64(l.boot), l.pid, l.guard, l.token, l.start, l.end, l.instance, l.workerType, l.role)
	return fmt.Appendf(b, "%-127s\n", text)
}

func parseLine(text string) (l line, err error) {
	f := strings.Fields(text)
	if len(f) != 10 {
		return l, fmt.Errorf("line %q: has %d fields, want 10", text, len(f))
	}
	var n [6]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(f[i+1], 10, 64); err != nil {
			return l, fmt.Errorf("line %q: %w", text, err)
		}
	}
	return line{
		event: f[0], boot: time.Duration(n[0]), pid: int(n[1]), guard: int(n[2]), token: n[3], start: n[4], end: n[5],
		instance: f[7], workerType: f[8], role: f[9],
	}, nil
}

// turn is what one process wrote with one token. (A token may have several commands in a
// row: one that was stopped, and whose lease was extended after all, is started again.)
type turn struct {
	line // the first

	first, last time.Duration
	late        *overlap
}

func (t *turn) String() string {
	return fmt.Sprintf("%s of %s (pid %d, guard %d, token %d, from %v to %v of the boot clock)", t.role, t.instance, t.pid, t.guard, t.token, t.first, t.last)
}

// follows reports whether a turn that began later must not begin before another has
// ended. Only a command and its own grandchildren may work at once.
func (t *turn) follows(o *turn) bool {
	return t.token > o.token || t.token == o.token && t != o && t.role == asCommand && o.role == asCommand
}

// overlap are the lines of a turn that were written when a newer one had begun, in the
// file or by the clock.
type overlap struct {
	*turn

	newer       *turn
	first, last time.Duration
	lines       int
}

// chronicle is the log of one worker type by turns.
type chronicle struct {
	lines    []line
	turns    []*turn // in the order of their first line
	overlaps []*overlap
}

// chronicleOf reads lines in the order in which they were written.
func chronicleOf(lines []line) chronicle {
	c := chronicle{lines: lines}
	type process struct {
		pid   int
		token int64
	}
	known := map[process]*turn{}
	var newest *turn
	var rivals []*turn // of the newest token
	for _, l := range lines {
		if l.role == asHarness {
			continue
		}
		me := process{l.pid, l.token}
		t := known[me]
		if t == nil {
			t = &turn{line: l, first: l.boot}
			known[me] = t
			c.turns = append(c.turns, t)
			if newest == nil || t.follows(newest) {
				for _, earlier := range rivals {
					// Written before, at a later time: both worked.
					if t.follows(earlier) && earlier.last >= l.boot {
						c.overlapped(earlier, earlier.last, t)
					}
				}
				if newest != nil && t.token > newest.token {
					rivals = nil
				}
				newest = t
			}
			if t.token == newest.token {
				rivals = append(rivals, t)
			}
		}
		t.last = max(t.last, l.boot)
		if newest.follows(t) {
			c.overlapped(t, l.boot, newest)
		}
	}
	return c
}

func (c *chronicle) overlapped(t *turn, at time.Duration, newer *turn) {
	if t.late == nil {
		t.late = &overlap{turn: t, newer: newer, first: at, last: at}
		c.overlaps = append(c.overlaps, t.late)
	}
	o := t.late
	o.first, o.last, o.lines = min(o.first, at), max(o.last, at), o.lines+1
}

// count counts lines of an event.
func (c chronicle) count(event string) (n int) {
	for _, l := range c.lines {
		if l.event == event {
			n++
		}
	}
	return n
}

// follower reads a log while it is written.
type follower struct {
	path string
	file *os.File
	rest []byte // of a line that wasn't whole
}

// next returns the lines that were written since the last call.
func (f *follower) next() (lines []line, err error) {
	if f.file == nil {
		f.file, err = os.Open(f.path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(f.file)
	if err != nil {
		return nil, err
	}
	text = append(f.rest, text...)
	whole := bytes.LastIndexByte(text, '\n') + 1
	f.rest = bytes.Clone(text[whole:])
	for each := range bytes.Lines(text[:whole]) {
		l, err := parseLine(string(each))
		if err != nil {
			return lines, err
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
}

// linesOf are all lines of a log; none if nothing was written.
func linesOf(path string) ([]line, error) {
	f := follower{path: path}
	defer f.close()
	return f.next()
}
