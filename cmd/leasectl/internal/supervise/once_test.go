package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// linked is a ledger in memory, and a link to it that fails as planned.
func linked(t *testing.T, plan func(faultstore.Call) faultstore.Fault) (inner *memory.Ledger, link store.Ledger) {
	t.Helper()
	inner = memory.New(memory.Options{})
	must(t, inner.Init(t.Context()))
	return inner, faultstore.New(inner, faultstore.Options{Plan: plan})
}

// onceOn is Once on a ledger, with a command of no interest.
func onceOn(t *testing.T, l store.Ledger, o workerlease.Options, p Patience) (unfit, err error) {
	t.Helper()
	o.WorkerType, o.InstanceID = "t", "b"
	timing, err := o.Timing()
	must(t, err)
	command := Command{Name: "/bin/true", Stdout: os.Stderr, Stderr: os.Stderr, Roster: true, Log: runlog.New(runlog.Options{To: io.Discard, Level: zapcore.ErrorLevel})}
	_, unfit, err = Once(t.Context(), l, timing, command, p)
	return unfit, err
}

// The exit code of a slot that another has is for cron jobs that may be skipped. A worker that may not write would
// never run, and nobody would know.
func TestASlotThatPassesWhileTheStoreFailsIsNobodyElses(t *testing.T) {
	for _, cause := range []error{store.ErrDenied, faultstore.ErrDown} {
		synctest.Test(t, func(t *testing.T) {
			_, link := linked(t, func(c faultstore.Call) faultstore.Fault {
				if c.Op != faultstore.OpAppend {
					return faultstore.Fault{}
				}
				return faultstore.Fault{Effect: faultstore.Dropped, Err: fmt.Errorf("no right to insert: %w", cause)}
			})
			unfit, err := onceOn(t, link, workerlease.Options{Schedule: slots.Must(slots.Every(time.Second))}, Patience{Since: time.Now(), Store: time.Minute})
			if unfit != nil || !errors.Is(err, cause) || errors.Is(err, workerlease.ErrNotClaimed) {
				t.Errorf("Once() = %v, %v, want the store's error, and not that the slot isn't claimed", unfit, err)
			}
		})
	}
}

// A read that failed once is not why a slot passed that an operator keeps all workers from.
func TestASlotOfAPauseIsNotMissedForTheStore(t *testing.T) {
	t.Parallel()
	inner, link := linked(t, func(c faultstore.Call) faultstore.Fault {
		if c.Op == faultstore.OpTail && c.N == 1 {
			return faultstore.Down()
		}
		return faultstore.Fault{}
	})
	pause := operate.Order{Kind: store.OrderPause, WorkerType: "t", InstanceID: "operator", For: time.Hour, Now: true}
	if _, err := operate.On(inner).Give(t.Context(), pause); err != nil {
		t.Fatal(err)
	}
	unfit, err := onceOn(t, link, workerlease.Options{Schedule: slots.Must(slots.Every(time.Hour))}, Patience{Since: time.Now(), Store: time.Minute})
	if unfit != nil || !errors.Is(err, workerlease.ErrNotClaimed) || errors.Is(err, faultstore.ErrDown) {
		t.Errorf("Once() = %v, %v, want that the slot isn't claimed, since it is paused", unfit, err)
	}
}

// --timeout holds whatever the store leaves unanswered, also if it has answered before.
func TestOnceGivesUpInTime(t *testing.T) {
	const timeout = 4 * time.Second
	for _, c := range []struct {
		hang    []faultstore.Op
		appends faultstore.Effect
	}{
		{hang: []faultstore.Op{faultstore.OpNow}},
		{hang: []faultstore.Op{faultstore.OpTail}},
		{hang: []faultstore.Op{faultstore.OpAttend, faultstore.OpLeave, faultstore.OpTail}},
		{hang: []faultstore.Op{faultstore.OpAppend}, appends: faultstore.Dropped},
		{hang: []faultstore.Op{faultstore.OpAppend, faultstore.OpGet, faultstore.OpTail}, appends: faultstore.Applied},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, link := linked(t, func(call faultstore.Call) faultstore.Fault {
				if slices.Contains(c.hang, call.Op) {
					return faultstore.BlackHole(c.appends)
				}
				return faultstore.Fault{}
			})
			began := time.Now()
			unfit, err := onceOn(t, link, workerlease.Options{Schedule: slots.Must(slots.Every(time.Hour)), Job: &workerlease.Job{}}, Patience{Since: began, Store: timeout})
			if took := time.Since(began); took > timeout+time.Second || unfit == nil && err == nil {
				t.Errorf("where %q hang, Once() took %v, and is %v, %v", c.hang, took, unfit, err)
			}
			time.Sleep(time.Minute) // until what was given up has ended
		})
	}
}

// Who waits for another worker's slot has one time-out, also if the store hangs meanwhile.
func TestTheWaitForAHolderAndTheStoreHaveOneTimeout(t *testing.T) {
	const timeout = 4 * time.Second
	for name, hangs := range map[string]bool{"the store answers": false, "the store hangs": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				inner, link := linked(t, func(call faultstore.Call) faultstore.Fault {
					if hangs && call.Op == faultstore.OpTail && time.Since(began) > timeout/2 {
						return faultstore.BlackHole(faultstore.Dropped)
					}
					return faultstore.Fault{}
				})
				o := workerlease.Options{WorkerType: "t", InstanceID: "a", Schedule: slots.Must(slots.Every(time.Hour)), Job: &workerlease.Job{}, FailoverWithin: 3 * time.Second}
				held, err := workerlease.NewClient(inner, workerlease.ClientOptions{}).TryClaim(t.Context(), o)
				must(t, err)
				unfit, err := onceOn(t, link, o, Patience{Since: began, Store: timeout, Done: timeout})
				if took := time.Since(began); took > timeout+time.Second || errors.Is(err, workerlease.ErrNotClaimed) == hangs || unfit == nil && err == nil {
					t.Errorf("Once() took %v, and is %v, %v", took, unfit, err)
				}
				_ = held.Release(t.Context())
				time.Sleep(time.Minute) // until what was given up has ended
			})
		})
	}
}

// What the holder says right after a refusal, and before the watch for hints begins, is seen by one look more.
func TestWhatComesBeforeTheHintsIsSeenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, _ := linked(t, nil)
		o := workerlease.Options{WorkerType: "t", InstanceID: "a", Schedule: slots.Must(slots.Every(time.Hour)), Job: &workerlease.Job{}, FailoverWithin: time.Minute}
		held, err := workerlease.NewClient(inner, workerlease.ClientOptions{}).TryClaim(t.Context(), o)
		must(t, err)
		time.AfterFunc(500*time.Millisecond, func() { _ = held.Complete(context.Background()) })
		began := time.Now()
		o.InstanceID = "b"
		_, err = onceOn(t, struct{ store.Ledger }{inner}, o, Patience{Since: began, Store: time.Minute})
		if n, ok := errors.AsType[*workerlease.NotClaimed](err); !ok || n.Why != workerlease.AlreadyDone || time.Since(began) > 2*time.Second {
			t.Errorf("Once() = %v after %v, want soon that the slot is done", err, time.Since(began))
		}
		time.Sleep(time.Minute) // until all has ended
	})
}
