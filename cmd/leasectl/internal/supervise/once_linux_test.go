package supervise

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// A run of Once that its lease's end cuts short has failed, unless it ended well when it was told to.
func TestTheRunOfOnceThatIsCutHasFailed(t *testing.T) {
	suites.RealTime(t)
	t.Parallel()
	for name, c := range map[string]struct {
		command string
		job     *workerlease.Job
		code    int
		failed  bool
	}{
		"a command":              {"exec sleep 60", nil, 143, true},
		"a job":                  {"exec sleep 60", &workerlease.Job{Overrun: workerlease.Stop}, 143, true},
		"one that ends in order": {"trap 'exit 0' TERM; sleep 60 & wait", nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			inner, _ := linked(t, nil)
			const every = 4 * time.Second // from now on; 1970-01-05 is whole ones after the beginning of Unix time
			now := time.Duration(time.Now().UnixMilli()) * time.Millisecond % every
			o := workerlease.Options{WorkerType: "t", InstanceID: "a", Schedule: slots.Must(slots.EveryFrom(every, now)), Job: c.job}
			timing, err := o.Timing()
			if err != nil {
				t.Fatal(err)
			}
			var failures []error
			log := &lines{}
			command := Command{
				Name: "/bin/sh", Args: []string{"-c", c.command}, Stdout: os.Stderr, Stderr: os.Stderr, Grace: 200 * time.Millisecond,
				Log: runlog.New(runlog.Options{To: log, Level: zapcore.WarnLevel, Once: true}),
				Observer: event.ObserverFunc(func(e event.Event) {
					switch f := e.(type) {
					case event.Faltered:
						failures = append(failures, f.Err)
					case event.TaskFailed:
						failures = append(failures, f.Err)
					}
				}),
			}
			code, unfit, err := Once(t.Context(), inner, timing, command, Patience{Since: time.Now(), Store: time.Minute})
			command.Log.Close()
			if err != nil || code != c.code {
				procs.TooLate(t, begun, fmt.Sprintf("Once() = %d, %v, %v", code, unfit, err))
			}
			if got := len(failures) == 1; got != c.failed || len(failures) > 1 {
				t.Errorf("told of the failures %v, want one: %v", failures, c.failed)
			}
			if warned := strings.Contains(log.String(), "command: signal 15 (terminated), stopped at the deadline"); warned != c.failed {
				t.Errorf("the log is %q, want a warning: %v", log, c.failed)
			}
			records, _, err := inner.Tail(t.Context(), "t", 10)
			if err != nil {
				t.Fatal(err)
			}
			told := slices.ContainsFunc(records, func(r store.Record) bool {
				o, is := r.Outcome()
				return is && o.Cause == store.SlotEnded && o.ExitCode == c.code
			})
			if told != c.failed {
				t.Errorf("the records are %+v, want that the run was cut: %v", records, c.failed)
			}
		})
	}
}
