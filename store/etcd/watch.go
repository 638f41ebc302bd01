package etcd

import (
	"context"
	"errors"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Watcher = (*Ledger)(nil)

// Watch watches the records' keys, by etcd's own watch. While no member can be reached, nothing is told; etcd's client
// connects again by itself, and goes on where it was.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	c := l.c
	// A cluster that is unfit has no records to watch.
	if _, err := storekit.Run(ctx, c.runner, "watch", "", func(context.Context) (none struct{}, err error) { return none, nil }); err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	folder := c.folder() + records
	var why error
	for reply := range c.client.Watch(inner, folder, clientv3.WithPrefix(), clientv3.WithFilterDelete()) {
		if why = reply.Err(); why != nil {
			break
		}
		for _, event := range reply.Events {
			workerType, _, inside := strings.Cut(strings.TrimPrefix(string(event.Kv.Key), folder), "/")
			if inside && storekit.Frees(event.Kv.Value) && ctx.Err() == nil {
				changed(workerType)
			}
		}
	}
	if why == nil {
		why = errors.New("the watch has ended")
	}
	// It names the end of ctx or of the ledger in its place, if there is one.
	_, err := storekit.RunUnchecked(ctx, c.runner, "watch", "", func(context.Context) (none struct{}, err error) { return none, why })
	return err
}
