package faultstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/store"
)

var (
	_ store.Watcher = (*Ledger)(nil)
	_ store.Watcher = (*Counter)(nil)
)

// Watch passes on the hints of the inner ledger, except during an outage of Break, in which they
// are lost. The error matches errors.ErrUnsupported if the inner ledger gives none. Plan isn't
// called: a hint is no operation.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	return watch(ctx, l.inner, func(workerType string) {
		l.mu.Lock()
		lost := l.closed || l.outage != nil
		l.mu.Unlock()
		if !lost {
			changed(workerType)
		}
	})
}

// Watch passes on the hints of the inner ledger. It is neither counted nor logged.
func (c *Counter) Watch(ctx context.Context, changed func(workerType string)) error {
	return watch(ctx, c.inner, changed)
}

func watch(ctx context.Context, inner store.Ledger, changed func(workerType string)) error {
	w, ok := inner.(store.Watcher)
	if !ok {
		return fmt.Errorf("faultstore: watch: %w", errors.ErrUnsupported)
	}
	return w.Watch(ctx, changed)
}
