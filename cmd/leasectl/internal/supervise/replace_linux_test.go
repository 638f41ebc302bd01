package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// started is a set of jobs on a ledger in memory, which ends with the test.
type started struct {
	*Jobs

	t      *testing.T
	ledger store.Ledger
	log    *runlog.Log
	lines  *lines
	dir    string // has a file for each job, with a line for each run: its process
}

func startJobs(t *testing.T) *started {
	t.Helper()
	s := &started{t: t, ledger: memory.New(memory.Options{}), lines: &lines{}, dir: t.TempDir()}
	s.log = runlog.New(runlog.Options{To: s.lines, Level: zapcore.InfoLevel})
	s.Jobs = NewJobs(s.ledger, Options{Log: s.log})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	t.Cleanup(func() {
		if unfit, err := s.Stop(ctx, nil); errors.Join(unfit, err) != nil {
			t.Errorf("Stop() = %v, %v", unfit, err)
		}
		if t.Failed() {
			t.Log(s.lines.String())
		}
	})
	return s
}

// ran are the processes of the runs of a job.
func (s *started) ran(name string) []string { return procs.Lines(filepath.Join(s.dir, name)) }

// want is a job that is done once in a slot longer than any test, by a shell: it writes down its process, and then runs a script.
func (s *started) want(name, script string) Wanted {
	s.t.Helper()
	o := workerlease.Options{WorkerType: name, InstanceID: "a", Schedule: slots.Must(slots.Every(2400 * time.Hour)), Job: &workerlease.Job{StartWithin: 2400 * time.Hour, MinRetry: 10 * time.Millisecond}}
	timing, err := o.Timing()
	if err != nil {
		s.t.Fatal(err)
	}
	return Wanted{Timing: timing, Same: script, Command: Command{
		Name: "/bin/sh", Args: []string{"-c", `echo $$ >> "$0"; ` + script, filepath.Join(s.dir, name)}, Env: os.Environ(), Stdout: io.Discard, Stderr: io.Discard,
		Log: s.log.Of(event.Worker{WorkerType: name, InstanceID: "a"}),
	}}
}

func (s *started) replace(wanted ...Wanted) Changes {
	s.t.Helper()
	c, err := s.Replace(s.t.Context(), wanted)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// waits is a script that runs until a file is there.
func (s *started) waits(file string) string {
	return fmt.Sprintf("while ! [ -e %s ]; do sleep 0.02; done", filepath.Join(s.dir, file))
}

func (s *started) touch(file string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, file), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// outcome is the newest outcome of a job in the ledger, or empty.
func (s *started) head(name string) store.Record {
	s.t.Helper()
	tail, _, err := s.ledger.Tail(s.t.Context(), name, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(tail) == 0 {
		return store.Record{}
	}
	return tail[0]
}

// 100 reloads add, remove and change jobs beside some that stay: of these nobody notices, by their processes, which run on.
func TestJobsThatStayAreUntouchedByReloads(t *testing.T) {
	t.Parallel()
	s := startJobs(t)
	var stay []Wanted
	for i := range 4 {
		stay = append(stay, s.want(fmt.Sprint("stay", i), s.waits("never")))
	}
	s.replace(stay...)
	procs.Eventually(t, "the runs", func() bool {
		for _, w := range stay {
			if len(s.ran(w.Options.WorkerType)) == 0 {
				return false
			}
		}
		return true
	})
	before := map[string][]string{}
	for _, w := range stay {
		before[w.Options.WorkerType] = s.ran(w.Options.WorkerType)
	}
	for i := range 100 {
		wanted := append([]Wanted{s.want(fmt.Sprint("other", i%3), fmt.Sprint("exit 0 # ", i))}, stay...)
		if c := s.replace(wanted...); c.Unchanged != len(stay) || c.Added+c.Changed != 1 {
			t.Fatalf("reload %d: %+v, want %d unchanged, and one added or changed", i, c, len(stay))
		}
	}
	for name, pids := range before {
		if now := s.ran(name); len(now) != 1 || now[0] != pids[0] {
			t.Errorf("%s: the processes of its runs are %q, want %q alone", name, now, pids)
		} else if _, err := os.Stat("/proc/" + now[0]); err != nil {
			t.Errorf("%s: its run has ended: %v", name, err)
		}
	}
}

func TestAJobThatIsRemovedLetsItsRunEndAndThenItsLease(t *testing.T) {
	t.Parallel()
	s := startJobs(t)
	s.replace(s.want("gone", s.waits("done")))
	procs.Eventually(t, "the run", func() bool { return len(s.ran("gone")) == 1 })
	if c := s.replace(); c != (Changes{Removed: 1}) {
		t.Errorf("a reload without the job: %+v", c)
	}
	if c := s.replace(); c != (Changes{}) {
		t.Errorf("another reload: %+v, want nothing to do", c)
	}
	time.Sleep(200 * time.Millisecond) // realtime: what should not happen would happen meanwhile
	if h := s.head("gone"); h.Kind == store.KindRelease || len(s.list()) != 1 {
		t.Fatalf("the head is %+v, want the run to go on", h)
	}
	s.touch("done")
	procs.Eventually(t, "the end of the job", func() bool { return len(s.list()) == 0 })
	if h := s.head("gone"); h.Done == "" {
		t.Errorf("the head is %+v, want the slot to be done", h)
	}
	if ran := s.ran("gone"); len(ran) != 1 {
		t.Errorf("the job ran as %q, want once", ran)
	}
}

// What is wanted last begins after the run of what was there, whatever was wanted in between.
func TestAJobThatHasChangedIsReplacedAfterItsRun(t *testing.T) {
	t.Parallel()
	s := startJobs(t)
	s.replace(s.want("job", s.waits("failed")+"; exit 1"))
	procs.Eventually(t, "the run", func() bool { return len(s.ran("job")) == 1 })
	second, third := s.want("job", "exit 7"), s.want("job", "echo third >> "+filepath.Join(s.dir, "said"))
	for i, step := range []struct {
		wanted []Wanted
		want   Changes
	}{
		{[]Wanted{second}, Changes{Changed: 1}},
		{nil, Changes{Removed: 1}},
		{[]Wanted{third}, Changes{Changed: 1}},
		{[]Wanted{third}, Changes{Unchanged: 1}},
	} {
		if c := s.replace(step.wanted...); c != step.want {
			t.Errorf("reload %d: %+v, want %+v", i, c, step.want)
		}
	}
	s.touch("failed")
	procs.Eventually(t, "the third", func() bool { return len(procs.Lines(filepath.Join(s.dir, "said"))) == 1 })
	if ran := s.ran("job"); len(ran) != 2 {
		t.Errorf("the job ran as %q, want the first and the third", ran)
	}
	if text := s.lines.String(); strings.Count(text, "job: stopping: "+errChanged.Error()) != 1 {
		t.Error("the log doesn't say once that the job has changed")
	}
}

// A command that goes on from slot to slot has no end to wait for.
func TestAContinuousJobThatIsRemovedIsStopped(t *testing.T) {
	t.Parallel()
	s := startJobs(t)
	w := s.want("daemon", "sleep 1000")
	o := w.Options
	o.Job, o.Continuous = nil, true
	timing, err := o.Timing()
	must(t, err)
	w.Timing = timing
	s.replace(w)
	procs.Eventually(t, "the run", func() bool { return len(s.ran("daemon")) == 1 })
	s.replace()
	procs.Eventually(t, "the end of the job", func() bool { return len(s.list()) == 0 })
	if h := s.head("daemon"); h.Kind != store.KindRelease {
		t.Errorf("the head is %+v, want a release", h)
	}
}

// stuck is a writer whose reader doesn't read.
type stuck struct{ until chan struct{} }

func (s stuck) Write(b []byte) (int, error) {
	<-s.until
	return len(b), nil
}

// Whoever reads the output may have stopped: neither the end of a job waits for that, nor does what is passed on become more
// with each run.
func TestOutputThatNobodyReadsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	s := startJobs(t)
	unread := stuck{make(chan struct{})}
	defer close(unread.until)
	w := s.want("unread", "echo; echo >&2")
	timing, err := workerlease.Options{
		WorkerType: "unread", InstanceID: "a", Schedule: slots.Must(slots.Every(2 * time.Second)), Job: &workerlease.Job{StartWithin: 2 * time.Second},
	}.Timing()
	must(t, err)
	w.Timing, w.Stdout, w.Stderr, w.Label = timing, unread, unread, "unread: "
	s.replace(w)
	s.mu.RLock()
	j := s.all["unread"]
	s.mu.RUnlock()
	j.copies.Add(mostCopies - 1) // as of earlier runs
	procs.Eventually(t, "runs whose output is lost", func() bool { return strings.Contains(s.lines.String(), errUnread.Error()) })
	runs := len(s.ran("unread"))
	procs.Eventually(t, "another run", func() bool { return len(s.ran("unread")) > runs })
	procs.Eventually(t, "the end of the copies that nobody waits for", func() bool { return j.copies.Load() <= mostCopies+1 })
	s.replace()
	procs.Eventually(t, "the end of the job", func() bool { return len(s.list()) == 0 })
}

// What a job that has changed still has to tell doesn't hold up the one in its place.
func TestAJobThatHasChangedDoesNotWaitForWhoIsTold(t *testing.T) {
	t.Parallel()
	s := startJobs(t)
	told := make(chan struct{})
	defer close(told)
	w := s.want("changes", "true")
	w.Ended = func() { <-told }
	s.replace(w)
	procs.Eventually(t, "the run", func() bool { return len(s.ran("changes")) == 1 })
	s.replace(s.want("changes", "true; true"))
	procs.Eventually(t, "the job in its place", func() bool { return strings.Count(s.lines.String(), "changes: priority 0") == 2 })
}
