package supervise

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

func TestMain(m *testing.M) {
	procs.Feel()
	parallel.Waiting() // for slots
	os.Exit(m.Run())
}

// lines is a log that is read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// A store that doesn't answer until the command was told to end, and then does: the
// command is started again, which for a job is one more attempt.
func TestACommandWhoseLeaseIsExtendedLateIsStartedAgain(t *testing.T) {
	suites.RealTime(t)
	t.Parallel()
	for name, c := range map[string]struct {
		job      *workerlease.Job
		failover time.Duration
		code     int // of the command that is told to end
	}{
		"a command":          {nil, 8 * time.Second, 0},
		"a job of each slot": {&workerlease.Job{StartWithin: 24 * time.Hour, MinRetry: 10 * time.Millisecond}, 8 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			inner := memory.New(memory.Options{})
			if err := inner.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			link := faultstore.New(inner, faultstore.Options{})
			dir := t.TempDir()
			up, told := filepath.Join(dir, "up"), filepath.Join(dir, "told")
			o := workerlease.Options{
				WorkerType: "t", InstanceID: "a", Schedule: slots.Must(slots.Every(24 * time.Hour)), Job: c.job,
				FailoverWithin: c.failover, MinBackoff: 20 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
			}
			timing, err := o.Timing()
			if err != nil {
				t.Fatal(err)
			}
			var logged lines
			command := Command{
				Name: "/bin/sh",
				Args: []string{"-c", `trap ': >> "$1"; exit $2' TERM; echo "$LEASE_TOKEN" >> "$0"; while :; do sleep 0.02; done`, up, told, strconv.Itoa(c.code)},
				Env:  os.Environ(), Stdout: io.Discard, Stderr: io.Discard, Grace: c.failover / 4,
				Log: runlog.New(runlog.Options{To: &logged, Level: zapcore.DebugLevel}),
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() {
				unfit, err := Run(ctx, link, timing, command)
				ended <- errors.Join(unfit, err)
			}()
			procs.Eventually(t, "the command", func() bool { return len(procs.Lines(up)) == 1 })
			link.Break(faultstore.Down())
			expired := func() bool { return strings.Contains(logged.String(), "ended: "+string(workerlease.WindowEnded)) }
			procs.Eventually(t, "the command is told to end", func() bool {
				_, err := os.Stat(told)
				return err == nil || expired() // On a busy machine the lease may run out first.
			})
			link.Mend()
			procs.Eventually(t, "the command is started again", func() bool { return len(procs.Lines(up)) >= 2 })
			tail, _, err := inner.Tail(t.Context(), "t", 10)
			stop()
			if err := errors.Join(err, <-ended); err != nil {
				t.Errorf("Run() = %v", err)
			}
			if expired() {
				procs.TooLate(t, begun, "the lease was not extended before its end")
			}
			tokens := procs.Lines(up)
			if c.job == nil {
				if len(tail) < 2 || tail[0].Token != tail[len(tail)-1].Token || tokens[0] != tokens[1] {
					t.Errorf("the ledger has %+v, and the command the tokens %q, want one term that was extended", tail, tokens)
				}
				return
			}
			head, _, err := inner.Tail(t.Context(), "t", 1)
			if err != nil || len(head) != 1 || head[0].Attempt != 2 || tokens[0] == tokens[1] {
				t.Errorf("the head is %+v, %v, under the tokens %q, want a second attempt", head, err, tokens)
			}
			if !strings.Contains(logged.String(), "failed: "+string(store.LeaseLost)) {
				t.Errorf("the log doesn't say that the command was cut short:\n%s", logged.String())
			}
			why := func(r store.Record) bool { o, _ := r.Outcome(); return o.Error == errExtendedLate.Error() }
			if !slices.ContainsFunc(tail, why) {
				t.Errorf("no outcome in %+v says %q", tail, errExtendedLate)
			}
		})
	}
}
