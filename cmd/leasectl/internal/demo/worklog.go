package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
)

const fenceSuffix = ".fence"

// write writes a line to a log, through its fence: a file with the newest token that wrote,
// and with how many lines were refused, as this one is if its token is lower. No error is
// returned then. All is one step, under a lock.
func write(log *os.File, line Line, event string) (err error) {
	f, err := os.OpenFile(log.Name()+fenceSuffix, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // which unlocks it
	if err := lock(f.Fd(), exclusive); err != nil {
		return err
	}
	var newest, late int64
	if _, err := fmt.Fscan(f, &newest, &late); err != nil && !errors.Is(err, io.EOF) { // It is empty at first.
		return err
	}
	if line.Token < newest {
		late++
	}
	line.Event, line.Boot = event, guard.Boottime()
	b, err := json.Marshal(line)
	if err == nil { // The fence goes first: when the work is killed here, nothing older passes all the same.
		_, err = f.WriteAt(fmt.Appendf(nil, "%20d %20d", max(newest, line.Token), late), 0)
	}
	if err == nil && line.Token >= newest {
		_, err = log.Write(append(b, '\n'))
	}
	return err
}

// refused is how many lines the fence of a log has refused. There is no fence before the first line.
func refused(path string) (late int) {
	b, _ := os.ReadFile(path + fenceSuffix)
	_, _ = fmt.Sscan(string(b), new(int64), &late)
	return late
}

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

// work is lines of one process, one after the other. Its last line counts as its end.
type work struct {
	worker     string
	pid        int
	token      int64
	slot       time.Time
	begin, end time.Time // store time
}

// worksOf makes works of the lines. zero is store time at 0 of the boot clock.
func worksOf(lines []Line, zero time.Time) (works []work) {
	for _, l := range lines {
		i := len(works) - 1
		if i < 0 || works[i].pid != l.PID || works[i].token != l.Token {
			i++
			works = append(works, work{worker: l.Worker, pid: l.PID, token: l.Token, slot: l.Slot, begin: zero.Add(l.Boot)})
		}
		works[i].end = zero.Add(l.Boot)
	}
	return works
}

// successor is who took over from the work that was killed: another worker, with a higher
// token. It is empty as long as nobody has.
func successor(works []work, fell work) string {
	for _, w := range works {
		if w.token > fell.token && w.worker != fell.worker {
			return w.worker
		}
	}
	return ""
}
