//go:build linux

package main

import (
	"bufio"
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

func (l line) append(b []byte) []byte {
	return fmt.Appendf(b, "%s %d %d %d %d %d %d %s %s %s\n", l.event, int64(l.boot), l.pid, l.guard, l.token, l.start, l.end, l.instance, l.workerType, l.role)
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

// work is what was written with one token of one worker type.
type work struct {
	workerType, instance string
	token                int64
	start                int64 // of the slot
	guards               []int
	commands             int // that began; more than one is a bug
	first, last          time.Duration
	quit                 bool
}

// overlap are the lines of one process that were written with a token when a higher
// one had begun, in the file or by the clock.
type overlap struct {
	line // the first

	older, newer int64
	first, last  time.Duration
	lines        int
	began        bool // it even began after the newer one
}

// chronicle is the log by tokens.
type chronicle struct {
	works    map[string][]*work // by worker type, in the order of their first line
	overlaps []*overlap
	lines    int
	unsure   int // writes that the fence didn't answer
	refused  int // writes that the fence refused
	readings map[string]*reading
}

// reading is the state of one worker type while its lines are read.
type reading struct {
	byToken  map[int64]*work
	highest  *work
	overlaps map[[2]int64]*overlap // by pid and token
	lastOf   map[int]line          // by pid, of the highest token
}

func newChronicle() *chronicle {
	return &chronicle{works: map[string][]*work{}, readings: map[string]*reading{}}
}

// readLog reads the log in the order in which it was written.
func readLog(r io.Reader) (*chronicle, error) {
	c := newChronicle()
	return c, scanLog(r, c.add)
}

func chronicleOf(lines []line) *chronicle {
	c := newChronicle()
	for _, l := range lines {
		c.add(l)
	}
	return c
}

func scanLog(r io.Reader, take func(line)) error {
	scan := bufio.NewScanner(r)
	for scan.Scan() {
		l, err := parseLine(scan.Text())
		if err != nil {
			return err
		}
		take(l)
	}
	return scan.Err()
}

func (c *chronicle) add(l line) {
	if l.role == asHarness {
		return
	}
	c.lines++
	switch l.event {
	case unsure:
		c.unsure++
	case stale:
		c.refused++
	}
	t := c.readings[l.workerType]
	if t == nil {
		t = &reading{byToken: map[int64]*work{}, overlaps: map[[2]int64]*overlap{}, lastOf: map[int]line{}}
		c.readings[l.workerType] = t
	}
	w := t.byToken[l.token]
	if w == nil {
		w = &work{workerType: l.workerType, instance: l.instance, token: l.token, start: l.start, first: l.boot}
		t.byToken[l.token] = w
		c.works[l.workerType] = append(c.works[l.workerType], w)
	}
	w.add(l)
	switch {
	case t.highest == nil:
		t.highest = w
	case l.token < t.highest.token:
		c.overlapped(t, l, t.highest.token)
		return
	case l.token > t.highest.token:
		// Written before, at a later time: both worked.
		for _, earlier := range t.lastOf {
			if earlier.boot >= l.boot {
				c.overlapped(t, earlier, l.token)
			}
		}
		clear(t.lastOf)
		t.highest = w
	}
	t.lastOf[l.pid] = l
}

func (w *work) add(l line) {
	w.first, w.last = min(w.first, l.boot), max(w.last, l.boot)
	if n := len(w.guards); n == 0 || w.guards[n-1] != l.guard {
		w.guards = append(w.guards, l.guard)
	}
	if l.event == began && l.role == asCommand {
		w.commands++
	}
	w.quit = w.quit || l.event == quit
}

func (c *chronicle) overlapped(t *reading, l line, newer int64) {
	key := [2]int64{int64(l.pid), l.token}
	o := t.overlaps[key]
	if o == nil {
		o = &overlap{line: l, older: l.token, newer: newer, first: l.boot, last: l.boot}
		t.overlaps[key] = o
		c.overlaps = append(c.overlaps, o)
	}
	o.first, o.last = min(o.first, l.boot), max(o.last, l.boot)
	o.lines++
	o.began = o.began || l.event == began
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
	err = scanLog(bytes.NewReader(text[:whole]), func(l line) { lines = append(lines, l) })
	return lines, err
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
