package workerlease

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// workOf is what came of user code, for the ledger: the text of its error, and what the error, or one that it
// wraps, says by methods of its own. Of a panic it is the first line: the stack comes after that.
func workOf(err error, took time.Duration) machine.Work {
	work := machine.Work{Took: took}
	if err == nil {
		return work
	}
	work.Error = err.Error()
	if errors.Is(err, ErrPanicked) {
		work.Error, _, _ = strings.Cut(work.Error, "\n")
	}
	// The machine keeps it until it is stored.
	work.Error = strings.Clone(work.Error[:min(len(work.Error), 2*store.MaxError)])
	if code, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		work.ExitCode, work.Exited = code.ExitCode(), true
	}
	if timed, ok := errors.AsType[interface {
		error
		Took() time.Duration
	}](err); ok {
		work.Took = max(timed.Took(), 0)
	}
	return work
}

// work is workOf under the lease, with what that has written.
func (l Lease) work(err error, took time.Duration) machine.Work {
	work := workOf(err, took)
	if l.active != nil {
		if output := l.active.wrote.Load(); output != nil {
			work.Output = *output
		}
	}
	return work
}

// taskError is that the task has failed in a slot: by an error of its own or, with a cause, because it was cut.
type taskError struct {
	workerType string
	slot       slots.Slot
	cause      store.Cause
	err        error
}

func (e *taskError) Error() string {
	return fmt.Sprintf("%s: task in slot %v: %s", e.workerType, e.slot, cmp.Or(string(e.cause), e.err.Error()))
}

func (e *taskError) Unwrap() error { return e.err }

// exhausted is the error of a slot that is given up: with what failed, if that was this worker's task.
func (w *WorkerLease) exhausted(slot slots.Slot, attempts int) error {
	w.mu.Lock()
	last := w.progress.lastError
	w.mu.Unlock()
	if failed, ok := errors.AsType[*taskError](last); ok && failed.slot == slot {
		return fmt.Errorf("%w; given up (attempts: %d)", last, attempts)
	}
	return fmt.Errorf("%s: slot %v is given up (attempts: %d): its job isn't done", w.options.WorkerType, slot, attempts)
}

// Wrote has the end of what the work wrote recorded with what comes of it: see store.Outcome.Output. Call it before the task
// returns, and before FailedWith or Complete. Whoever may read the ledger can read it, so it must have no secrets; and it makes
// records larger, which all workers of the type read. Of more than 16 KiB the beginning is left out.
func (l Lease) Wrote(output string) {
	if l.active != nil {
		output = strings.Clone(output[max(len(output)-2*store.MaxOutput, 0):])
		l.active.wrote.Store(&output)
	}
}

// Rest calls wait, and says meanwhile that no code of the user's runs: Status.Running is false. It is for code that keeps its
// lease while it waits to try again.
func (l Lease) Rest(wait func()) {
	if wait == nil {
		return
	}
	if l.active != nil {
		l.active.rests.Store(true)
		defer l.active.rests.Store(false)
	}
	wait()
}

// Failed is FailedWith without an error.
func (l Lease) Failed() { l.FailedWith(nil) }

// FailedWith reports that the work under the lease has failed in this slot, for code that keeps its lease
// nevertheless. It counts as an error of a task does: after three slots in a row the worker lets others go first
// in the next slots (see event.SteppedBack). And the ledger gets a record that says so, for history.Read and
// leasectl inspect slots: the first failure in a slot, if there is time for that before anything else is due. It says
// nothing of a lease that has ended.
//
// That record has the first KiB of the error's text, so this must have no secrets. If the error, or one that it
// wraps, has a method ExitCode() int, as an exec.ExitError has, it is recorded, too. A method Took() time.Duration
// says how long the work took; else it is taken to have begun with the lease or, if that goes on over several
// slots, with the slot.
func (l Lease) FailedWith(err error) {
	if l.active != nil && l.active.lapsed() == 0 {
		w := l.active.w
		l.active.faltered.Store(true)
		w.post(arrival{
			event:    machine.Faltered{Claim: l.active.term.Load().Claim, Work: l.work(err, 0)},
			observed: []event.Event{event.Faltered{Worker: w.label(), Lease: l.active.lease().plain(), Err: err}},
		})
	}
}
