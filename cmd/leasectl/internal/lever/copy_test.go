package lever

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/move"
)

// A move that ends early must never advise to resume on the first store while workers on the second may claim.
func TestAMoveThatEndsEarlySaysWhatIsPausedByThen(t *testing.T) {
	t.Parallel()
	no := func(string) string { return "" }
	from, err := storeuri.Parse("sqlite:old.db", no)
	if err != nil {
		t.Fatal(err)
	}
	to, err := storeuri.Parse("sqlite:new.db", no)
	if err != nil {
		t.Fatal(err)
	}
	stays, runs, giveUp := "t stays paused on "+from.Place(), "workers on "+to.Place()+" may claim: don't end the pause on "+from.Place(), "leasectl resume"
	for _, c := range []struct {
		r         move.Result
		err       error
		says, not string
	}{
		{move.Result{Step: move.StepWait, Paused: store.Record{Seq: 7}}, context.DeadlineExceeded, stays, runs},
		{move.Result{Step: move.StepWait, Paused: store.Record{Seq: 7}}, interrupt.Err, stays, runs},
		{move.Result{Step: move.StepCopy, Paused: store.Record{Seq: 7}}, move.ErrUsed, stays, runs},
		{move.Result{Step: move.StepWait, Paused: store.Record{Seq: 7}}, store.ErrDenied, stays, runs},
		{move.Result{Step: move.StepPause}, denied("old.db"), "the file old.db", stays},
		{move.Result{Step: move.StepPause}, fmt.Errorf("%w: %w", move.ErrSecond, denied("new.db")), "the file new.db", "old.db"},
		{move.Result{Step: move.StepPause, Arriving: true}, store.ErrDenied, "t goes on on " + from.Place() + ", and is paused on " + to.Place(), stays},
		{move.Result{Step: move.StepPause, Arriving: true}, move.ErrPaused, "leasectl status --store sqlite:old.db", stays},
		{move.Result{Step: move.StepWait, Paused: store.Record{Seq: 7}}, move.ErrLost, stays, runs},
		{move.Result{}, move.ErrUsed, "", stays},
		{move.Result{}, move.ErrMoved, "inspect slots --worker-type t --store sqlite:old.db", stays},
		{move.Result{Step: move.StepResume, Paused: store.Record{Seq: 7}}, context.DeadlineExceeded, runs, giveUp},
		{move.Result{Step: move.StepHistory, Paused: store.Record{Seq: 7}}, context.DeadlineExceeded, runs, giveUp},
		{move.Result{Step: move.StepHistory, Paused: store.Record{Seq: 7}}, store.ErrThrottled, runs, giveUp},
	} {
		e, ok := errors.AsType[*exit.Error](moveFailure(from, to, &Options{WorkerType: "t"}, c.r, c.err))
		if !ok {
			t.Errorf("after %v at step %q there is no exit code", c.err, c.r.Step)
			continue
		}
		if (e.Code == exit.Interrupted) != errors.Is(c.err, interrupt.Err) {
			t.Errorf("after %v at step %q: exit code %d", c.err, c.r.Step, e.Code)
		}
		if text := fmt.Sprint(e, e.Try); !strings.Contains(text, c.says) || strings.Contains(text, c.not) {
			t.Errorf("after %v at step %q: %s; want %q, and not %q", c.err, c.r.Step, text, c.says, c.not)
		}
	}
}

// denied is what the store of a file says that may not be written.
type denied string

func (d denied) Error() string  { return string(d) + ": " + store.ErrDenied.Error() }
func (d denied) Unwrap() error  { return store.ErrDenied }
func (d denied) Remedy() string { return "read and write the file " + string(d) }
