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

// primary is what sentinels said last.
type primary struct {
	mu   sync.Mutex
	addr string
	at   time.Time
}

func (n *primary) current() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addr
}

// confirm asks the sentinels whether the primary is still the same, and leaves it if it isn't. Without an answer the
// connections that there are go on.
func (l *Ledger) confirm(ctx context.Context) {
	l.primary.mu.Lock()
	now := l.clock.Now()
	due := l.primary.addr != "" && now.Sub(l.primary.at) >= askAgain
	if due {
		l.primary.at = now // Others that come meanwhile don't ask.
	}
	l.primary.mu.Unlock()
	if due {
		ctx, cancel := l.clock.WithTimeout(ctx, askPatience)
		defer cancel()
		_, _ = l.primaryByName(ctx)
	}
}

// primaryByName is the address of the primary.
func (l *Ledger) primaryByName(ctx context.Context) (string, error) {
	ask := l.askSentinels
	if l.failover {
		ask = l.askClient
	}
	addr, err := ask(ctx)
	if err != nil {
		return "", err
	}
	l.primary.mu.Lock()
	defer l.primary.mu.Unlock()
	if l.primary.addr != addr {
		l.links.renew()
	}
	l.primary.addr, l.primary.at = addr, l.clock.Now()
	return addr, nil
}

// askSentinels asks one sentinel after another for the primary, first the one that answered last. One that doesn't
// answer may take all the time there is: the next operation begins with the one after it.
func (l *Ledger) askSentinels(ctx context.Context) (string, error) {
	var errs []error
	for range l.address.hosts {
		n := l.turn.Load()
		host := l.address.hosts[int(n)%len(l.address.hosts)]
		addr, _, err := l.askSentinel(ctx, host)
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

// askSentinel asks a sentinel for the primary, and for the replicas that it knows, also of those that are down.
func (l *Ledger) askSentinel(ctx context.Context, host string) (primary string, replicas []string, err error) {
	name, _, _ := net.SplitHostPort(host)
	k, err := l.link(ctx, l.connect, host, name, l.sentinel)
	if err != nil {
		return "", nil, err
	}
	defer k.close()
	replies, err := k.ask(ctx, command{"SENTINEL", "get-master-addr-by-name", l.address.service}, command{"SENTINEL", "replicas", l.address.service})
	if err != nil {
		return "", nil, err
	}
	parts, err := replies[0].StringSlice()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return "", nil, err
	}
	if len(parts) != 2 {
		return "", nil, fmt.Errorf("it knows no primary by the name %s", l.address.service)
	}
	known, _ := replies[1].Slice()
	for _, one := range known {
		fields, _ := one.([]any)
		about := map[any]any{}
		for ; len(fields) > 1; fields = fields[2:] {
			about[fields[0]] = fields[1]
		}
		replicas = append(replicas, net.JoinHostPort(fmt.Sprint(about["ip"]), fmt.Sprint(about["port"])))
	}
	return net.JoinHostPort(parts[0], parts[1]), replicas, nil
}
