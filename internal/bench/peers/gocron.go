//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// jobTakes is how long a run of a job takes.
const jobTakes = 100 * time.Millisecond

// gocronJob is a job of gocron that is due every period: since its scheduler's start, or, if
// aligned, by the time of day.
type gocronJob struct{ aligned bool }

func (j gocronJob) name() string {
	if j.aligned {
		return "gocron-cron"
	}
	return "gocron-duration"
}

func (gocronJob) serve(ctx context.Context, dir string) (*service, error) {
	return redisLock{}.serve(ctx, dir)
}

func (j gocronJob) work(ctx context.Context, n node) error {
	client := redis.NewClient(&redis.Options{Addr: n.address})
	defer func() { _ = client.Close() }()
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker{redsync.New(goredis.NewPool(client)), n.bound}))
	if err != nil {
		return err
	}
	due := gocron.DurationJob(n.bound)
	if j.aligned {
		due = gocron.CronJob(fmt.Sprintf("*/%d * * * * *", n.bound/time.Second), true)
	}
	_, err = scheduler.NewJob(due, gocron.NewTask(func() {
		n.began()
		time.Sleep(jobTakes)
	}), gocron.WithName(n.lease))
	if err != nil {
		return err
	}
	scheduler.Start()
	<-ctx.Done()
	return scheduler.Shutdown()
}

// locker does what gocron's own locker for Redis does, on the library that that one uses: it
// tries once, and holds the lock while the job runs.
type locker struct {
	locks  *redsync.Redsync
	expiry time.Duration
}

func (l locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	mutex := l.locks.NewMutex(key, redsync.WithTries(1), redsync.WithExpiry(l.expiry))
	return lock{mutex}, mutex.LockContext(ctx)
}

type lock struct{ mutex *redsync.Mutex }

func (l lock) Unlock(ctx context.Context) error {
	_, err := l.mutex.UnlockContext(ctx)
	return err
}
