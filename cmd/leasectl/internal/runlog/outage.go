package runlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
)

// marked is an event of a store that fails, marked as said already, if it is.
func (l *Log) marked(e event.Event) event.Event {
	switch e := e.(type) {
	case event.Unknown:
		e.Again = l.repeated(e.Again, e.Err)
		return e
	case event.Throttled:
		e.Again = l.repeated(e.Again, e.Err)
		return e
	case event.StoreFailed:
		e.Again = l.repeated(e.Again, e.Err)
		return e
	}
	return e
}

// ofCheck is the operation of a look at the ledger.
const ofCheck = "check"

// Check looks at the ledger, and returns why it can't be used. What ends leasing isn't told: it is shown at the end. So what workers
// meet meanwhile, of the kind that lasts, is told only if the look meets no such thing.
func (l *Log) Check(ctx context.Context, look func(report func(error)) error) error {
	l.mu.Lock()
	l.checking = true
	l.mu.Unlock()
	told := false
	err := look(func(err error) {
		told = told || advice.Lasting(err)
		l.Failed(ofCheck, err)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.checking = false; l.held != nil && err == nil && !told && ctx.Err() == nil {
		l.held()
	}
	l.held = nil
	return err
}

// holds reports whether a failure isn't told as long as there is a look at the ledger. The caller holds the lock.
func (l *Log) holds(f event.StoreFailed) bool {
	if !l.checking || f.Operation == ofCheck || !advice.Lasting(f.Err) {
		return false
	}
	if l.held == nil {
		l.held = func() { l.observe(f) }
	}
	return true
}

// repeated reports whether a failure isn't told: it was told already, by the worker or, as long as the store has never
// answered, by the look at the ledger: both meet a store that isn't there yet, or that refuses. Or leasing ends.
func (l *Log) repeated(again bool, err error) bool {
	told := again || l.failing && !l.ready && (l.lasting || !advice.Lasting(err))
	l.failing, l.lasting = true, l.lasting || advice.Lasting(err)
	return told || l.ends || l.stopping
}

// failure is an operation that failed, as what describes it, and how that goes on.
func (l *Log) failure(again bool, what string, err error) string {
	ends := fmt.Sprintf("; leasectl ends if that lasts for %v", advice.Patience)
	switch {
	case again:
		return what
	case !advice.Lasting(err) && !l.ready:
		ends = "; trying on"
	case !advice.Lasting(err), !l.ready && !errors.Is(err, store.ErrDenied), l.ready && l.once:
		ends = "" // Or it ends now, or with its command.
	case advice.Removed(err):
		ends = fmt.Sprintf("; leasectl ends in %v", advice.Patience)
	}
	if l.ready {
		return what + ends
	}
	return fmt.Sprintf("store not reached yet: %v%s", err, ends)
}

// recovered is a store that works again.
func (l *Log) recovered(e event.StoreRecovered) string {
	l.failing, l.lasting = false, false
	text := "store: reached again after " + display.Brief(e.Took.Round(time.Millisecond))
	if e.Missed+e.Lapsed > 0 {
		text += fmt.Sprintf("; meanwhile it missed %s, and lost %s", display.Count(e.Missed, "slot"), display.Count(e.Lapsed, "lease"))
	}
	return text
}
