package lever

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// awaitEvery is how often Trigger looks whether the run has ended, and lateLooks how often after others have said that the
// worker of the last attempt died: it may live, and say that it is done.
const (
	awaitEvery = time.Second / 2
	lateLooks  = 20
)

// Trigger asks for one more run of a job. With o.Wait it waits for the end of that, and tells people what comes before.
func Trigger(ctx context.Context, t storeuri.Target, o Options, out, told io.Writer) error {
	var r store.Record
	var g Given
	err := o.opened(ctx, t, func(ctx context.Context, l store.Ledger) (err error) {
		if err = runs(ctx, t, l, o.WorkerType); err != nil {
			return advice.ForStore(t, err)
		}
		r, err = operate.On(l).Give(ctx, operate.Order{
			Kind: store.OrderTrigger, WorkerType: o.WorkerType, For: o.For, IfIdle: o.IfIdle, InstanceID: o.By, Reason: o.Reason,
		})
		if err != nil {
			return failure(t, &o, err)
		}
		g = o.given(ctx, t, l, r)
		return nil
	})
	if err != nil {
		return err
	}
	if !o.Wait {
		return o.show(out, g, g.text())
	}
	_, _ = io.WriteString(told, display.Text(g.text()))
	w := waiting{options: &o, target: t, given: g, order: r, seen: r.Seq, told: told}
	err = w.await(ctx)
	if w.given.Outcome == nil {
		return err
	}
	return errors.Join(err, o.show(out, w.given, w.text))
}

// runs is an error if a worker type has neither records nor, in the roster, workers: its name may be mistyped. So it is if
// workers are there, and none of them has a job.
func runs(ctx context.Context, t storeuri.Target, l store.Ledger, name string) error {
	var crew []store.Presence
	if roster, ok := store.As[store.Roster](l); ok {
		crew, _ = roster.Presences(ctx, name)
	}
	if len(crew) == 0 {
		return hasRecords(ctx, l, name, "nobody is known to run it")
	}
	now, err := l.Now(ctx)
	if err != nil {
		return err
	}
	there := slices.DeleteFunc(crew, func(p store.Presence) bool { return !workerlease.IsPresent(p, now.Time) })
	if len(there) == 0 || slices.ContainsFunc(there, func(p store.Presence) bool { return p.Job != nil }) {
		return nil
	}
	e := exit.With(exit.Failure, fmt.Errorf("no worker of %s runs a job once per slot, by the roster, so none would run it for a trigger; nothing was written", name))
	e.Try = advice.Command(t, "leasectl release --worker-type "+name) + ", after which its command is started anew"
	return e
}

// waiting is the wait for the end of a run that was asked for.
type waiting struct {
	options *Options
	target  storeuri.Target
	given   Given
	order   store.Record
	seen    int64  // the newest record that was looked at
	text    string // what came of it
	dead    int    // looks since the last attempt is said to be dead
	told    io.Writer
}

// await looks again and again, until the run is done, given up or over, or ctx ends.
func (w *waiting) await(ctx context.Context) (err error) {
	l, _, err := w.target.OpenToLease(ctx)
	if err != nil {
		return advice.ForStore(w.target, err)
	}
	defer func() { err = errors.Join(err, advice.ForStore(w.target, storeuri.Close(ctx, l))) }()
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, w.options.Timeout)
		records, _, err := l.Tail(limited, w.order.WorkerType, 64)
		cancel()
		switch over, result := w.look(records); {
		case err != nil && ctx.Err() == nil:
			return advice.ForStore(w.target, err)
		case over:
			return result
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			e := exit.With(exit.Failure, fmt.Errorf("it wasn't waited for to its end: %w; the order stands", context.Cause(ctx)))
			if errors.Is(context.Cause(ctx), interrupt.Err) {
				e.Code = exit.Interrupted
			}
			return e
		}
	}
}

// look takes in the newest records, and reports that nothing more comes, and with what result.
func (w *waiting) look(records []store.Record) (over bool, result error) {
	order, _ := w.order.Order()
	for _, r := range slices.Backward(records) {
		o, tells := r.Outcome()
		if r.Seq <= w.seen {
			continue
		}
		if w.seen = r.Seq; !tells || !o.SlotStart.Equal(order.At) {
			continue
		}
		by := fmt.Sprintf("attempt %d, by %s", o.Attempt, display.Flat(o.InstanceID))
		switch w.given.Outcome, w.text = json.RawMessage(o.Metadata()), by+", has succeeded\n"; {
		case o.Result == store.Succeeded:
			return true, nil
		case o.GivenUp && o.Cause == store.WorkerDied:
			w.dead, w.text = 1, by+", has failed"+whyFailed(o)+", and was the last\n"
			continue
		case o.GivenUp:
			w.text = by + ", has failed" + whyFailed(o) + ", and was the last\n"
			return true, exit.Quiet(exit.GivenUp)
		}
		_, _ = io.WriteString(w.told, display.Text(by+", has failed"+whyFailed(o)+": it is tried again\n"))
	}
	if w.dead > 0 {
		if w.dead++; w.dead <= lateLooks {
			return false, nil
		}
		return true, exit.Quiet(exit.GivenUp)
	}
	if len(records) == 0 || records[0].Seq == w.order.Seq || store.Triggers(records[0].Orders, order.At) {
		return false, nil
	}
	if h := records[0]; h.Triggered() && h.SlotStart.Equal(order.At) && h.Kind != store.KindRelease && h.WindowStart.Before(h.WindowEnd) {
		return false, nil // The order is over, and its run goes on.
	}
	e := exit.With(exit.Missed, errors.New("its time is over, or another operator has ended the order, and nobody has said that it is done"))
	e.Try = advice.Command(w.target, "leasectl inspect slots --worker-type "+w.order.WorkerType)
	return true, e
}

// whyFailed is why an attempt has failed, after a colon; empty if that isn't known.
func whyFailed(o store.Outcome) string {
	switch {
	case o.Cause != "":
		return ": " + display.Line(string(o.Cause)) + inspect.Spared(o.Cause)
	case o.Error != "":
		return ": " + display.Clip(display.Line(o.Error), 200)
	}
	return ""
}
