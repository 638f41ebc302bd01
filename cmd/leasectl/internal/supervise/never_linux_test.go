package supervise

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// A command that isn't there has the exit code 0 of no status: its slot isn't done for that.
func TestAJobThatWasNeverStartedIsNotDone(t *testing.T) {
	t.Parallel()
	inner, _ := linked(t, nil)
	o := workerlease.Options{WorkerType: "t", InstanceID: "a", Schedule: slots.Must(slots.Every(24 * time.Hour)), Job: &workerlease.Job{}}
	timing, err := o.Timing()
	must(t, err)
	j := newJob(Wanted{Timing: timing, Command: Command{
		Name: "/no/such/command", Log: runlog.New(runlog.Options{To: io.Discard, Level: zapcore.ErrorLevel}),
	}})
	defer j.over()
	claim, err := workerlease.NewClient(inner, workerlease.ClientOptions{}).TryClaim(t.Context(), timing.Options)
	must(t, err)
	defer func() { _ = claim.Release(context.WithoutCancel(t.Context())) }()
	held, _ := claim.RunIfHeld(t.Context(), func(ctx context.Context, l workerlease.Lease) error {
		err = j.task(ctx, l)
		return nil
	})
	if !held || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("task() = %v, held %v, want that there is no such file", err, held)
	}
}
