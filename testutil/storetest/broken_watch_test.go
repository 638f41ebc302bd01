package storetest_test

import (
	"context"
	"errors"
)

// watchDefects are those of hints.
var watchDefects = []defect{
	{"a watch that goes on after it has returned", func(b *broken) {
		b.watch = func(ctx context.Context, changed func(string)) error {
			ended := make(chan error, 1)
			go func() { ended <- b.Ledger.Watch(context.WithoutCancel(ctx), changed) }()
			select {
			case err := <-ended:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}, "watch/nobody_is_told_after_Watch_has_returned"},
	{"a watch that doesn't say why it ends", func(b *broken) {
		b.watch = func(ctx context.Context, changed func(string)) error {
			_ = b.Ledger.Watch(ctx, changed)
			return errors.New("it ended")
		}
	}, "watch/a_watch_ends_when_its_handle_is_closed,_and_those_of_other_handles_go_on"},
}
