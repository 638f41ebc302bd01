package supervise

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Each way in which a lease ends early, and what the command has of its grace. The death of leasectl, which
// leaves none, is a test of the guard.
func TestWhatACommandHasOfItsGraceWhenItsLeaseEndsEarly(t *testing.T) {
	t.Parallel()
	const tidied, killed = 7, 128 + int(syscall.SIGKILL)
	for _, c := range []struct {
		cause  error // of the end of the lease; nil: it goes on
		urgent bool  // a second signal
		want   int   // exit code
	}{
		{workerlease.ErrStopped, false, tidied}, // the first SIGTERM, or a store that turned out unfit
		{workerlease.ErrPaused, false, tidied},
		{workerlease.ErrDrained, false, tidied},
		{workerlease.ErrAskedToRelease, false, tidied}, // or another worker is preferred
		{workerlease.ErrIneligible, false, tidied},
		{workerlease.ErrStalled, false, tidied},
		{workerlease.ErrClockJumped, false, killed},    // It isn't known when the window ends.
		{workerlease.ErrRecordVanished, false, killed}, // Another may work already.
		{workerlease.ErrLeaseExpired, false, killed},
		{nil, true, killed},
		{workerlease.ErrStopped, true, killed},
	} {
		t.Run(fmt.Sprintf("%v, urgent %v", c.cause, c.urgent), func(t *testing.T) {
			t.Parallel()
			up, takes := filepath.Join(t.TempDir(), "up"), "0.05"
			if c.want == killed {
				takes = "inf" // who isn't killed hangs
			}
			urgent := make(chan struct{})
			j := &job{
				pacing: pacingOf(t, workerlease.Options{}, 24*time.Hour, time.Hour), news: make(chan event.Lease, 1), kept: newKept(),
				Command: Command{
					Name: "/bin/sh", Args: []string{"-c", `trap 'sleep $1; exit 7' TERM; echo >> "$0"; while :; do sleep 0.01; done`, up, takes},
					Env: os.Environ(), Urgent: urgent, Log: runlog.New(runlog.Options{To: io.Discard, Level: zapcore.ErrorLevel}),
				},
			}
			client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{})
			claim, err := client.TryClaim(t.Context(), workerlease.Options{WorkerType: "t", Schedule: slots.Must(slots.Every(2400 * time.Hour))})
			if err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancelCause(t.Context())
			var ended time.Time
			go func() {
				for len(procs.Lines(up)) == 0 {
					time.Sleep(time.Millisecond) // realtime: a shell does not say when it has begun
				}
				ended = time.Now() // realtime: make prove judges it
				if c.cause != nil {
					end(c.cause)
				}
				if c.urgent {
					close(urgent)
				}
			}()
			if e := j.under(ctx, &claim.Lease); e.ExitCode() != c.want || e.err != nil {
				t.Errorf("the command of a lease that ended by %v, urgent %v: %v, %v, want the code %d", c.cause, c.urgent, e.Status, e.err, c.want)
			}
			if c.want == killed {
				procs.Within(t, "from the end of the lease to the kill", time.Since(ended), 300*time.Millisecond) // realtime: as above
			}
		})
	}
}
