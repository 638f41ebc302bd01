//go:build linux

package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redisLock is a key of the bound on one server, by redsync: its holder extends it every third
// of the bound, and others try every 50 to 250 ms, as is redsync's default.
type redisLock struct{}

func (redisLock) name() string { return "redis" }

func (redisLock) serve(ctx context.Context, dir string) (*service, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	stop, err := server(ctx, dir, "redis-server", port, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "")
	if err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + port
	client := redis.NewClient(&redis.Options{Addr: address})
	return &service{
		address:    address,
		operations: func(ctx context.Context) (int64, error) { return commands(ctx, client) },
		stop: func() {
			_ = client.Close()
			stop()
		},
	}, nil
}

// What clients send: the commands inside of scripts are others.
var sent = regexp.MustCompile(`cmdstat_(?:set|eval|evalsha):calls=(\d+)`)

// commands is how many commands there were for locks.
func commands(ctx context.Context, client *redis.Client) (n int64, err error) {
	text, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	for _, m := range sent.FindAllStringSubmatch(text, -1) {
		calls, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m[0], err)
		}
		n += calls
	}
	return n, nil
}

func (redisLock) work(ctx context.Context, n node) error {
	client := redis.NewClient(&redis.Options{Addr: n.address})
	defer func() { _ = client.Close() }()
	locks := redsync.New(goredis.NewPool(client))
	for ctx.Err() == nil {
		mutex := locks.NewMutex(n.lease, redsync.WithExpiry(n.bound))
		if mutex.LockContext(ctx) != nil {
			continue // It has tried 32 times, and tries again.
		}
		n.began()
		hold(ctx, mutex, n.bound/3)
	}
	return nil
}

// hold extends a lock until it is lost, or ctx ends: then it is released.
func hold(ctx context.Context, mutex *redsync.Mutex, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			_, _ = mutex.UnlockContext(context.WithoutCancel(ctx))
			return
		case <-tick.C:
			if ok, err := mutex.ExtendContext(ctx); ctx.Err() == nil && (err != nil || !ok) {
				return
			}
		}
	}
}
