package supervise

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// The exit code of a slot that another has is for cron jobs that may be skipped. A worker that may not write would
// never run, and nobody would know.
func TestASlotThatPassesWhileTheStoreFailsIsNobodyElses(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{"denied": store.ErrDenied, "down": faultstore.ErrDown} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := memory.New(memory.Options{})
			if err := inner.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			link := faultstore.New(inner, faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
				if c.Op != faultstore.OpAppend {
					return faultstore.Fault{}
				}
				return faultstore.Fault{Effect: faultstore.Dropped, Err: fmt.Errorf("no right to insert: %w", cause)}
			}})
			timing, err := workerlease.Options{WorkerType: "t", InstanceID: "a", Schedule: slots.Must(slots.Every(time.Second)), JoinMidSlot: true}.Timing()
			if err != nil {
				t.Fatal(err)
			}
			command := Command{Name: "/bin/true", Stdout: io.Discard, Stderr: io.Discard, Log: runlog.New(runlog.Options{To: io.Discard, Level: zapcore.ErrorLevel})}
			_, unfit, err := Once(t.Context(), link, timing, command, time.Minute)
			if unfit != nil || !errors.Is(err, cause) || errors.Is(err, workerlease.ErrNotClaimed) {
				t.Errorf("Once() = %v, %v, want the store's error, and not that the slot isn't claimed", unfit, err)
			}
		})
	}
}

// A read that failed once is not why a slot passed that an operator keeps all workers from.
func TestASlotOfAPauseIsNotMissedForTheStore(t *testing.T) {
	t.Parallel()
	inner := memory.New(memory.Options{})
	if err := inner.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	pause := workerlease.PauseOptions{WorkerType: "t", InstanceID: "operator", For: time.Hour, Now: true}
	if _, err := workerlease.NewClient(inner, workerlease.ClientOptions{}).Pause(t.Context(), pause); err != nil {
		t.Fatal(err)
	}
	link := faultstore.New(inner, faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
		if c.Op == faultstore.OpTail && c.N == 1 {
			return faultstore.Down()
		}
		return faultstore.Fault{}
	}})
	timing, err := workerlease.Options{WorkerType: "t", InstanceID: "a", Schedule: slots.Must(slots.Every(time.Hour)), JoinMidSlot: true}.Timing()
	if err != nil {
		t.Fatal(err)
	}
	command := Command{Name: "/bin/true", Stdout: io.Discard, Stderr: io.Discard, Log: runlog.New(runlog.Options{To: io.Discard, Level: zapcore.ErrorLevel})}
	_, unfit, err := Once(t.Context(), link, timing, command, time.Minute)
	if unfit != nil || !errors.Is(err, workerlease.ErrNotClaimed) || errors.Is(err, faultstore.ErrDown) {
		t.Errorf("Once() = %v, %v, want that the slot isn't claimed, since it is paused", unfit, err)
	}
}
