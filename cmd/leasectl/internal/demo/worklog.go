package demo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// ReadLog reads the lines of a log of [Work] that are complete. It may be written meanwhile, or not be there yet.
func ReadLog(path string) (lines []Line, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for text := range bytes.Lines(b) {
		var line Line
		if bytes.HasSuffix(text, []byte("\n")) && err == nil {
			err = json.Unmarshal(text, &line)
			lines = append(lines, line)
		}
	}
	return lines, err
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
