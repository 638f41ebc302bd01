package beside

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis is a lock of the form SET key value NX PX ttl, which its holder renews.
type Redis struct {
	Client *redis.Client
	Key    string
	TTL    time.Duration
}

var (
	renew  = redis.NewScript(`return redis.call("GET", KEYS[1]) == ARGV[1] and redis.call("PEXPIRE", KEYS[1], ARGV[2])`)
	remove = redis.NewScript(`return redis.call("GET", KEYS[1]) == ARGV[1] and redis.call("DEL", KEYS[1])`)
)

// TryLock takes the lock. It renews it after a third of the TTL, and takes it for lost if that isn't answered by the next third.
func (r Redis) TryLock(ctx context.Context) (context.Context, func(), error) {
	mine := rand.Text()
	locked, err := r.Client.SetNX(ctx, r.Key, mine, r.TTL).Result()
	if err != nil || !locked {
		return nil, nil, err
	}
	held, stop := watched(ctx, r.TTL/3, func(ctx context.Context) bool {
		n, err := renew.Run(ctx, r.Client, []string{r.Key}, mine, r.TTL.Milliseconds()).Int()
		return err == nil && n == 1
	})
	return held, func() {
		stop()
		_ = remove.Run(context.WithoutCancel(ctx), r.Client, []string{r.Key}, mine).Err() // or it expires
	}, nil
}

// RedisRuns has a key for each run. It is kept for so long, which must be longer than any old worker may be late.
func RedisRuns(client *redis.Client, job, system string, kept time.Duration) Ticket {
	return func(ctx context.Context, due time.Time) (bool, error) {
		key := job + ":" + due.UTC().Format(time.RFC3339)
		first, err := client.SetNX(ctx, key, system, kept).Result()
		if err != nil || first {
			return first, err
		}
		by, err := client.Get(ctx, key).Result()
		return err == nil && by == system, err
	}
}
