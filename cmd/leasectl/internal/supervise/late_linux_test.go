package supervise

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

func TestMain(m *testing.M) {
	guard.Main()
	os.Exit(m.Run())
}

// run is Run with one error.
func run(ctx context.Context, l store.Ledger, t workerlease.Timing, c Command) error {
	unfit, err := Run(ctx, l, t, c)
	return errors.Join(unfit, err)
}

func timing(t *testing.T, o workerlease.Options) workerlease.Timing {
	t.Helper()
	timing, err := o.Timing()
	if err != nil {
		t.Fatal(err)
	}
	return timing
}

// eventually waits until ok, and fails the test if that doesn't come.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	const patience = 30 * time.Second
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// linesOf are the lines of a file that are complete.
func linesOf(path string) (lines []string) {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		if text, complete := strings.CutSuffix(line, "\n"); complete {
			lines = append(lines, text)
		}
	}
	return lines
}

// A store that doesn't answer until the command was told to end, and then does.
func TestACommandWhoseLeaseIsExtendedLateIsStartedAgain(t *testing.T) {
	t.Parallel()
	inner := memory.New(memory.Options{})
	if err := inner.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	link := faultstore.New(inner, faultstore.Options{})
	dir := t.TempDir()
	up, told := filepath.Join(dir, "up"), filepath.Join(dir, "told")
	o := workerlease.Options{
		WorkerType: "t", InstanceID: "a", Schedule: slots.Must(slots.Every(time.Hour)), JoinMidSlot: true,
		FailoverWithin: 8 * time.Second, MinBackoff: 20 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := runlog.New(runlog.Options{To: io.Discard, Level: zapcore.DebugLevel})
	command := Command{Name: "/bin/sh", Args: []string{"-c", `trap ': >> "$1"; exit 0' TERM; echo up >> "$0"; while :; do sleep 0.02; done`, up, told}, Env: os.Environ(), Stdout: io.Discard, Stderr: io.Discard, Grace: o.FailoverWithin / 4, Log: log}
	done := make(chan error, 1)
	go func() { done <- run(ctx, link, timing(t, o), command) }()
	lines := func() int {
		b, _ := os.ReadFile(up)
		return strings.Count(string(b), "\n")
	}
	eventually(t, "the command", func() bool { return lines() == 1 })
	link.Break(faultstore.Down())
	eventually(t, "the command is told to end", func() bool {
		_, err := os.Stat(told)
		return err == nil
	})
	link.Mend()
	eventually(t, "the command is started again", func() bool { return lines() == 2 })
	head, _, err := inner.Tail(t.Context(), "t", 10)
	if err != nil || len(head) < 2 || head[0].Token != head[len(head)-1].Token {
		t.Errorf("the ledger has %+v, %v, want one term that was extended", head, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run() = %v", err)
	}
}

// A store that doesn't answer until the command was told to end, and then does: what
// is left of the slot is one more attempt.
func TestAJobWhoseLeaseIsExtendedLateIsTriedAgain(t *testing.T) {
	t.Parallel()
	inner := memory.New(memory.Options{})
	if err := inner.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	link := faultstore.New(inner, faultstore.Options{})
	dir := t.TempDir()
	up, told := filepath.Join(dir, "up"), filepath.Join(dir, "told")
	logged := &bytes.Buffer{}
	o := workerlease.Options{
		WorkerType: "t", InstanceID: "a", Schedule: slots.Must(slots.Every(time.Hour)), JoinMidSlot: true, Job: &workerlease.Job{},
		FailoverWithin: 12 * time.Second, MinBackoff: 20 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := runlog.New(runlog.Options{To: logged, Level: zapcore.DebugLevel})
	command := Command{Name: "/bin/sh", Args: []string{"-c", `trap ': >> "$1"; exit 1' TERM; echo "$LEASE_TOKEN" >> "$0"; while :; do sleep 0.02; done`, up, told}, Env: os.Environ(), Stdout: io.Discard, Stderr: io.Discard, Grace: o.FailoverWithin / 4, Log: log}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, link, timing(t, o), command) }()
	eventually(t, "the command", func() bool { return len(linesOf(up)) == 1 })
	link.Break(faultstore.Down())
	eventually(t, "the command is told to end", func() bool {
		_, err := os.Stat(told)
		return err == nil
	})
	link.Mend()
	eventually(t, "the command is started again", func() bool { return len(linesOf(up)) == 2 })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run() = %v", err)
	}
	tail, _, err := inner.Tail(t.Context(), "t", 1)
	if err != nil || len(tail) != 1 || tail[0].Attempt != 2 || linesOf(up)[0] == linesOf(up)[1] {
		t.Errorf("the head is %+v, %v, under the tokens %q, want a second attempt", tail, err, linesOf(up))
	}
	if !strings.Contains(logged.String(), "failed: "+errExtendedLate.Error()) {
		t.Errorf("the log doesn't say that the command was cut short:\n%s", logged)
	}
}
