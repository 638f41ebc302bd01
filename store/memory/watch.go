package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/slotlease/slotlease/store"
)

// watch is one call of Watch.
type watch struct {
	of      *Ledger
	changed func(workerType string)
	closed  chan struct{} // when its handle is
}

// Watch calls changed whenever any handle, also this one, has appended what may free a lease: on
// the goroutine of Append, before that returns.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	if err := l.enter(ctx, "watch", ""); err != nil {
		return err
	}
	w := &watch{of: l, changed: changed, closed: make(chan struct{})}
	l.watches = append(l.watches, w)
	l.mu.Unlock()
	var err error
	select {
	case <-ctx.Done():
		err = fmt.Errorf("memory: watch: %w", context.Cause(ctx))
	case <-w.closed:
		err = fmt.Errorf("memory: watch: %w", store.ErrClosed)
	}
	l.unwatch(w)
	return err
}

// unwatch returns when changed is not called any more.
func (l *Ledger) unwatch(w *watch) {
	l.mu.Lock()
	l.watches = slices.DeleteFunc(l.watches, func(x *watch) bool { return x == w })
	l.mu.Unlock()
	l.telling.Lock()   // Whoever tells it now has begun before.
	l.telling.Unlock() //nolint:staticcheck // That is all.
}
