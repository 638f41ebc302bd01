package redis

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Watcher = (*Ledger)(nil)

// pingAfter is how long a silent watch waits before it asks whether the server is there.
const pingAfter = 30 * time.Second

// errUnanswered ends a watch whose server doesn't answer.
var errUnanswered = errors.New("the server doesn't answer")

// Watch subscribes to the channel to which appends publish what may free a lease, on its own connection. It ends when
// the connection does, and misses what is published meanwhile.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	// Run returns at the end of ctx while the goroutine goes on for a moment, in which it may tell nobody.
	var mu sync.Mutex
	over := false
	_, err := storekit.Run(ctx, l.runner, "watch", "", func(ctx context.Context) (none struct{}, err error) {
		return none, l.watch(ctx, func(workerType string) {
			mu.Lock()
			defer mu.Unlock()
			if !over {
				changed(workerType)
			}
		})
	})
	mu.Lock()
	defer mu.Unlock()
	over = true
	return err
}

// watch passes on what is published.
func (l *Ledger) watch(ctx context.Context, changed func(workerType string)) error {
	addr, err := l.locate(ctx)
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(addr)
	k, err := l.reach(ctx, addr, host)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = k.conn.Close() })()
	defer k.close()
	subscription := k.client.Subscribe(ctx, l.names.channel())
	defer func() { _ = subscription.Close() }()
	asked := false
	for {
		k.meter.left.Store(mostReply)
		got, err := subscription.ReceiveTimeout(ctx, pingAfter)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isTimeout(err) && !asked:
			if err := subscription.Ping(ctx); err != nil {
				return err
			}
			asked = true
			continue
		case isTimeout(err):
			return errUnanswered
		case err != nil:
			return err
		}
		asked = false
		if m, ok := got.(*goredis.Message); ok && store.CheckWorkerType(m.Payload) == nil {
			changed(m.Payload)
		}
	}
}

// isTimeout reports whether nothing came in time.
func isTimeout(err error) bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timeout.Timeout()
}
