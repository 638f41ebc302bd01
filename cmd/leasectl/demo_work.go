package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
)

// workName is the hidden command that is the demo's work.
const workName = "demo-work"

// heartbeat is how often the work writes a line.
const heartbeat = 100 * time.Millisecond

// What a line of the work log tells.
const (
	lineBegin = "begin"
	lineBeat  = "beat"
	lineEnd   = "end"
)

// workLine is one line of the log that all work of the demo appends to.
type workLine struct {
	Event  string        `json:"event"`
	Worker string        `json:"worker"`
	PID    int           `json:"pid"`
	Token  int64         `json:"token"`
	Slot   time.Time     `json:"slot"`
	Boot   time.Duration `json:"boot"` // the boot clock, in ns
}

func (a *app) workCommand() *cobra.Command {
	return &cobra.Command{
		Use:    workName + " FILE",
		Short:  "The work of the demo",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(c *cobra.Command, args []string) error { return a.work(c.Context().Done(), args[0]) },
	}
}

// work writes lines until it is told to stop.
func (a *app) work(stop <-chan struct{}, path string) (err error) {
	line := workLine{Worker: a.getenv("LEASE_INSTANCE_ID"), PID: os.Getpid()}
	if line.Token, err = strconv.ParseInt(a.getenv("LEASE_TOKEN"), 10, 64); err != nil {
		return err
	}
	if line.Slot, err = time.Parse(time.RFC3339, a.getenv("LEASE_SLOT_START")); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	write := func(event string) error {
		line.Event, line.Boot = event, guard.Boottime()
		// One write each: O_APPEND keeps the lines of all workers whole.
		b, err := json.Marshal(line)
		if err == nil {
			_, err = f.Write(append(b, '\n'))
		}
		return err
	}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for event := lineBegin; ; event = lineBeat {
		if err := write(event); err != nil {
			return err
		}
		select {
		case <-stop:
			return write(lineEnd)
		case <-ticker.C:
		}
	}
}

// workLog reads the log while it is written.
type workLog struct {
	path   string
	offset int64
	rest   []byte
	lines  []workLine
}

// read returns all lines that are complete.
func (l *workLog) read() ([]workLine, error) {
	f, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return nil, err
	}
	more, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	l.offset += int64(len(more))
	l.rest = append(l.rest, more...)
	for {
		text, rest, complete := bytes.Cut(l.rest, []byte("\n"))
		if !complete {
			return l.lines, nil
		}
		l.rest = rest
		var line workLine
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, err
		}
		l.lines = append(l.lines, line)
	}
}

// work is what one process of the demo did, by its own account. The last line of
// a process that was killed counts as its end.
type work struct {
	worker     string
	pid        int
	token      int64
	slot       time.Time
	begin, end time.Time // store time
	finished   bool
}

// worksOf puts the lines together to works, in the order in which they began.
// zero is store time at 0 of the boot clock.
func worksOf(lines []workLine, zero time.Time) []work {
	var works []work
	index := map[int]int{} // by pid
	for _, l := range lines {
		i, known := index[l.PID]
		if !known || works[i].token != l.Token {
			i = len(works)
			index[l.PID] = i
			works = append(works, work{worker: l.Worker, pid: l.PID, token: l.Token, slot: l.Slot, begin: zero.Add(l.Boot)})
		}
		works[i].end = zero.Add(l.Boot)
		works[i].finished = l.Event == lineEnd
	}
	slices.SortStableFunc(works, func(a, b work) int { return cmp.Compare(a.begin.UnixNano(), b.begin.UnixNano()) })
	return works
}
