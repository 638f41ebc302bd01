package redis

import (
	"context"
	"errors"
	"fmt"
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
	told := make(chan string)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := storekit.Run(inner, l.runner, "watch", "", func(ctx context.Context) (none struct{}, err error) {
			return none, l.watch(ctx, told)
		})
		done <- err
	}()
	for {
		select {
		case workerType := <-told:
			changed(workerType)
		case err := <-done:
			return err
		}
	}
}

// watch passes on what is published.
func (l *Ledger) watch(ctx context.Context, told chan<- string) error {
	addr, err := l.locate(ctx)
	if err != nil {
		return err
	}
	conn, err := l.connect(ctx, addr)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", addr, err)
	}
	client := l.client(conn, addr, l.address.user, l.address.password, l.address.db)
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	defer func() { _ = client.Close() }()
	subscription := client.Subscribe(ctx, l.names.channel())
	defer func() { _ = subscription.Close() }()
	asked := false
	for {
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
			select {
			case told <- m.Payload:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
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
