package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotlease/slotlease/store"
)

// watch has a ledger watched, as workers with FailoverWithin do, until the returned function is called, which says why that
// has failed; nil if it hasn't.
func watch(ctx context.Context, l store.Ledger) (failed func() error) {
	watcher, is := store.As[store.Watcher](l)
	if !is {
		return func() error { return fmt.Errorf("%w: the store gives none", errors.ErrUnsupported) }
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- watcher.Watch(ctx, func(string) {}) }()
	return func() error {
		defer cancel()
		select {
		case err := <-ended:
			return err
		default:
			return nil
		}
	}
}

// judgeHints says whether a store says at once that a lease may be free.
func judgeHints(err error) store.Finding {
	switch {
	case err == nil:
		return ok(checkHints, "this machine may hear of them: a watch lasted as long as the other checks")
	case errors.Is(err, errors.ErrUnsupported):
		return skip(checkHints, "none come here, so who waits for a lease looks when it is time: "+err.Error())
	}
	return warn(checkHints, "see to what is named; until then clean hand-overs take seconds, and nothing else depends on it", "none come here: %v", err)
}
