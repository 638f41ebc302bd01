package lever

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/move"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// Copied is what a move has done, as --output json shows it.
type Copied struct {
	WorkerType  string   `json:"workerType"`
	Copied      int      `json:"copied"`
	Seq         int64    `json:"seq"`
	Token       int64    `json:"token"`
	PausedUntil string   `json:"pausedUntil"`
	ApartMs     int64    `json:"apartMs"`
	Others      []string `json:"otherVersions,omitempty"`
}

// Copy moves a worker type from one store to another. It tells people what it waits for.
func Copy(ctx context.Context, from, to storeuri.Target, o Options, out, told io.Writer) error {
	if from.Place() == to.Place() {
		return exit.BadUsage("--to STORE, another than --store", errors.New("--to names the same store as --store: nothing can be moved"))
	}
	if err := o.ask("pause %s on %s, and move it to %s?", o.WorkerType, from.Place(), to.Place()); err != nil {
		return err
	}
	return o.opened(ctx, from, func(ctx context.Context, source store.Ledger) (err error) {
		if err := inspect.CheckType(ctx, source, o.WorkerType); err != nil {
			return advice.ForStore(from, err)
		}
		target, err := to.Open(ctx, false)
		if err != nil {
			return advice.ForStore(to, err)
		}
		defer func() { err = errors.Join(err, advice.ForStore(to, storeuri.Close(ctx, target))) }()
		if err := target.Init(ctx); err != nil {
			return advice.ForStore(to, err)
		}
		waits := ""
		r, err := move.Move(ctx, source, target, move.Options{
			WorkerType: o.WorkerType, Now: o.Now, History: o.History, InstanceID: o.By, Reason: o.Reason,
			Told: func(p move.Progress) {
				if line := progress(p); line != waits && line != "" {
					waits = line
					_, _ = io.WriteString(told, display.Text(line))
				}
			},
		})
		if err != nil {
			return moveFailure(from, to, &o, r, err)
		}
		return o.showCopied(out, from, to, r)
	})
}

// progress is what a move has come to, for people; empty if there is nothing to say.
func progress(p move.Progress) string {
	if len(p.Others) > 0 {
		return fmt.Sprintf("warning: of other versions than this leasectl: %s: any that is too old to know orders obeys no pause: upgrade it first\n", display.Line(strings.Join(p.Others, "; ")))
	}
	if p.Step != move.StepWait {
		return ""
	}
	return fmt.Sprintf("paused; %s has the lease until %s, and then workers with the new store may claim\n", display.Flat(p.Holder), store.Format(p.Until))
}

// showCopied writes what a move has done.
func (o *Options) showCopied(out io.Writer, from, to storeuri.Target, r move.Result) error {
	c := Copied{WorkerType: o.WorkerType, Copied: r.Copied, Seq: r.Head.Seq, Token: r.Head.Token, ApartMs: r.Apart.Milliseconds(), Others: r.Others}
	for _, order := range r.Paused.OrdersAt(r.Paused.ReadAt) {
		if order.Kind == store.OrderPause {
			c.PausedUntil = store.Format(order.Until)
		}
	}
	text := fmt.Sprintf("moved %s from %s to %s: %d records, up to %d\n", o.WorkerType, display.Flat(from.Place()), display.Flat(to.Place()), r.Copied, r.Head.Seq)
	if r.Resumed.Seq == 0 {
		text = fmt.Sprintf("%s was moved from %s to %s before\n", o.WorkerType, display.Flat(from.Place()), display.Flat(to.Place()))
	}
	text += "start workers with the new store; those with the old one claim nothing until " + c.PausedUntil + "\n"
	return o.show(out, c, text)
}

// moveFailure is an error of a move with its exit code, what is paused by now, and what to try.
func moveFailure(from, to storeuri.Target, o *Options, r move.Result, err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(move.ErrOptions):
		return exit.BadUsage("", err)
	case is(move.ErrNothing):
		return exit.With(exit.Failure, fmt.Errorf("%w: no worker of %s has had a slot; start workers with the new store", err, o.WorkerType))
	case is(move.ErrMoved):
		e := exit.With(exit.Failure, err)
		e.Try = advice.Command(from, "leasectl inspect slots --worker-type "+o.WorkerType)
		return e
	case is(move.ErrApart):
		e := exit.With(exit.Failure, err)
		e.Try = advice.Command(to, "leasectl doctor")
		return e
	}
	resumed := r.Step == move.StepResume || r.Step == move.StepHistory
	again := "the same command again, which goes on"
	if r.Paused.Seq == 0 && r.Arriving {
		err = fmt.Errorf("%w; %s goes on on %s, and is paused on %s until the same command succeeds", err, o.WorkerType, from.Place(), to.Place())
	}
	if r.Paused.Seq > 0 && !resumed {
		err = fmt.Errorf("%w; %s stays paused on %s, and on %s once that pause has been copied there", err, o.WorkerType, from.Place(), to.Place())
		again += "; or give it up: " + advice.Command(from, "leasectl resume --worker-type "+o.WorkerType)
	} else if resumed {
		err = fmt.Errorf("%w; workers on %s may claim: don't end the pause on %s", err, to.Place(), from.Place())
	}
	switch {
	case is(move.ErrUsed), is(move.ErrOrders):
		e := exit.With(exit.Failure, err)
		e.Try = advice.Command(to, "leasectl inspect slots --worker-type "+o.WorkerType)
		return e
	case is(move.ErrPaused), is(move.ErrGivenUp): // On either one.
		e := exit.With(exit.Failure, err)
		e.Try = "look at both: " + advice.Command(from, "leasectl status") + " and " + advice.Command(to, "leasectl status")
		return e
	case is(context.DeadlineExceeded) && !is(operate.ErrTimeUnknown), r.Paused.Seq > 0:
		// The pause is written, whatever the error says of the order that failed, and of whichever store it is.
		e := exit.With(exit.Failure, err)
		if is(interrupt.Err) {
			e.Code = exit.Interrupted
		}
		e.Try = again
		return e
	}
	if is(move.ErrSecond) {
		return failure(to, o, err)
	}
	return failure(from, o, err)
}
