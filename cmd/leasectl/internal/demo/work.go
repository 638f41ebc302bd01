package demo

import (
	"errors"
	"os"
	"strconv"
	"time"
)

// WorkCommand is the hidden command that calls [Work].
const WorkCommand = "demo-work"

// heartbeat is how often the work writes a line.
const heartbeat = 100 * time.Millisecond

// The events of a work log.
const (
	LineBegin = "begin"
	LineBeat  = "beat"
	LineEnd   = "end"
)

// Line is one line of the log that all work of the demo appends to.
type Line struct {
	Event  string        `json:"event"`
	Worker string        `json:"worker"`
	PID    int           `json:"pid"`
	Token  int64         `json:"token"`
	Slot   time.Time     `json:"slot"`
	Boot   time.Duration `json:"boot"` // the boot clock, in ns
}

// Work is the work of the demo: it writes lines to a file, through the fence, until it is
// stopped. getenv gives it the lease. It goes on when a line is refused: to end it is the
// guard's task.
func Work(stop <-chan struct{}, path string, getenv func(string) string) (err error) {
	line := Line{Worker: getenv("LEASE_INSTANCE_ID"), PID: os.Getpid()}
	if line.Token, err = strconv.ParseInt(getenv("LEASE_TOKEN"), 10, 64); err != nil {
		return err
	}
	if line.Slot, err = time.Parse(time.RFC3339, getenv("LEASE_SLOT_START")); err != nil {
		return err
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := lock(log.Fd(), shared); err != nil { // as long as this process lives: see awaitEnd
		return err
	}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for event := LineBegin; ; event = LineBeat {
		if err := write(log, line, event); err != nil {
			return err
		}
		select {
		case <-stop:
			return write(log, line, LineEnd)
		case <-ticker.C:
		}
	}
}
