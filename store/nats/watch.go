package nats

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/slotlease/slotlease/store/storekit"
)

// Watch watches the records' keys, by a watch of the bucket. After a lost connection the client makes it again by itself.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	_, err := storekit.Run(ctx, l.b.runner, "watch", "", func(ctx context.Context) (none struct{}, err error) {
		js, err := l.b.connected()
		if err != nil {
			return none, err
		}
		kv, err := js.KeyValue(ctx, l.b.at.Database)
		if err != nil {
			return none, err
		}
		watcher, err := kv.Watch(ctx, "ledger.>", jetstream.UpdatesOnly(), jetstream.IgnoreDeletes())
		if err != nil {
			return none, err
		}
		defer func() { _ = watcher.Stop() }()
		for {
			select {
			case <-ctx.Done():
				return none, ctx.Err()
			case entry, open := <-watcher.Updates():
				if !open {
					return none, errors.New("the watch has ended")
				}
				if entry == nil || !storekit.Frees(entry.Value()) || ctx.Err() != nil {
					continue
				}
				if parts := strings.Split(l.b.name(entry.Key()), "/"); len(parts) == 3 {
					changed(parts[1])
				}
			}
		}
	})
	return err
}
