package demo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// WorkLog reads a log of [Work] while it is written.
type WorkLog struct {
	Path string

	offset int64
	rest   []byte
	lines  []Line
}

// Read returns all lines that are complete.
func (l *WorkLog) Read() ([]Line, error) {
	f, err := os.Open(l.Path)
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
		var line Line
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, err
		}
		l.lines = append(l.lines, line)
	}
}

// work is the work of one process, as it logged it. The last line of a process that was
// killed counts as its end.
type work struct {
	worker     string
	pid        int
	token      int64
	slot       time.Time
	begin, end time.Time // store time
	finished   bool
}

// worksOf makes works of the lines, in the order in which they began.
// zero is store time at 0 of the boot clock.
func worksOf(lines []Line, zero time.Time) []work {
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
		works[i].finished = l.Event == LineEnd
	}
	slices.SortStableFunc(works, func(a, b work) int { return cmp.Compare(a.begin.UnixNano(), b.begin.UnixNano()) })
	return works
}
