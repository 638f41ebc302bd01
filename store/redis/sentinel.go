package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// askAgain is how long the sentinels' last word counts. After a failover the former primary may go on for 10 s
	// before it is told.
	askAgain = time.Second
	// askPatience is how long an operation waits for their word, if there is a connection that it can use without.
	askPatience = time.Second
)

// named is what sentinels said last.
type named struct {
	mu   sync.Mutex
	addr string
	at   time.Time
}

// confirm asks the sentinels whether the primary is still the same, and leaves it if it isn't. Without an answer the
// connections that there are go on.
func (l *Ledger) confirm(ctx context.Context) {
	l.named.mu.Lock()
	now := l.clock.Now()
	due := l.named.addr != "" && now.Sub(l.named.at) >= askAgain
	if due {
		l.named.at = now // Others that come meanwhile don't ask.
	}
	l.named.mu.Unlock()
	if due {
		ctx, cancel := l.clock.WithTimeout(ctx, askPatience)
		defer cancel()
		_, _ = l.primaryByName(ctx)
	}
}

// primaryByName is the address of the primary.
func (l *Ledger) primaryByName(ctx context.Context) (string, error) {
	addr, err := l.askSentinels(ctx)
	if err != nil {
		return "", err
	}
	l.named.mu.Lock()
	defer l.named.mu.Unlock()
	if l.named.addr != addr {
		l.links.renew()
	}
	l.named.addr, l.named.at = addr, l.clock.Now()
	return addr, nil
}

// askSentinels asks one sentinel after another for the primary, first the one that answered last. One that doesn't
// answer may take all the time there is: the next operation begins with the one after it.
func (l *Ledger) askSentinels(ctx context.Context) (string, error) {
	var errs []error
	for range l.address.hosts {
		n := l.turn.Load()
		host := l.address.hosts[int(n)%len(l.address.hosts)]
		addr, err := l.askSentinel(ctx, host)
		if err == nil {
			return addr, nil
		}
		l.turn.CompareAndSwap(n, n+1)
		errs = append(errs, fmt.Errorf("sentinel %s: %w", host, err))
		if ctx.Err() != nil {
			break
		}
	}
	return "", errors.Join(errs...)
}

// askSentinel asks a sentinel for the primary.
func (l *Ledger) askSentinel(ctx context.Context, host string) (string, error) {
	conn, err := l.connect(ctx, host)
	if err != nil {
		return "", err
	}
	k := &link{client: l.client(conn, host, l.sentinel.user, l.sentinel.password, 0), conn: conn, addr: host}
	defer k.close()
	replies, err := k.ask(ctx, command{"SENTINEL", "get-master-addr-by-name", l.address.service})
	if err != nil {
		return "", err
	}
	parts, err := replies[0].StringSlice()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return "", err
	}
	if len(parts) != 2 {
		return "", fmt.Errorf("it knows no primary by the name %s", l.address.service)
	}
	return net.JoinHostPort(parts[0], parts[1]), nil
}
