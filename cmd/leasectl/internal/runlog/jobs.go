package runlog

import (
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/slots"
)

// Jobs logs how many jobs of which files begin.
func (l *Log) Jobs(n int, files []string) {
	l.say(zap.InfoLevel, slots.Slot{}, fmt.Sprintf("instance %q: %s of %s", l.worker.InstanceID, display.Count(n, "job"), strings.Join(files, ", ")), "jobs begin",
		zap.Int("jobs", n), zap.Strings("files", files))
}

// Note logs something about a file of jobs: that something in it is lost, or how it is read.
func (l *Log) Note(text string, lost bool) {
	level := zap.InfoLevel
	if lost {
		level = zap.WarnLevel
	}
	l.say(level, slots.Slot{}, text, "note", zap.String("note", text))
}

// Reloaded logs what a reload has changed, in numbers of jobs.
func (l *Log) Reloaded(unchanged, changed, added, removed int) {
	l.say(zap.InfoLevel, slots.Slot{}, fmt.Sprintf("reloaded: %s unchanged, %d changed, %d added, %d removed", display.Count(unchanged, "job"), changed, added, removed), "reloaded",
		zap.Int("unchanged", unchanged), zap.Int("changed", changed), zap.Int("added", added), zap.Int("removed", removed))
}

// NotReloaded logs why the jobs stay as they are although their files have changed.
func (l *Log) NotReloaded(err error) {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	l.say(zap.ErrorLevel, slots.Slot{}, "not reloaded, all jobs stay as they are: "+text, "not reloaded", zap.String("error", text))
}
