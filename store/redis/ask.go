package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/store"
)

// asking is the command by which a server says, along with an operation, whether it is the primary, and what time it is. It
// comes first: a replica doesn't know what was appended last.
func (k *link) asking() command {
	if k.sections {
		return command{"INFO", "replication", "server"}
	}
	return command{"INFO"}
}

// exchange sends commands to a server that says that it is the primary, and returns their replies and its time. A command may have
// failed by itself, which is the error of its reply. After an error there are no replies: those of an attempt at another server
// would pass for this one's.
func (l *Ledger) exchange(ctx context.Context, commands ...command) ([]*goredis.Cmd, store.Stamp, error) {
	var replies []*goredis.Cmd
	var stamp store.Stamp
	err := l.on(ctx, func(k *link) (bool, error) {
		sent := l.clock.Now()
		got, err := k.ask(ctx, append([]command{k.asking()}, commands...)...)
		if err != nil {
			return false, err
		}
		replies = got[1:]
		for i, r := range replies {
			if commands[i][0] != "WAIT" && isCode(r.Err(), "MOVED", "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "BUSY") {
				return true, r.Err() // It did nothing, and says why.
			}
		}
		if stamp, err = l.identify(k, got[0], sent); err != nil {
			// A replica may take writes, and forgets them.
			return false, fmt.Errorf("what was read may be old, and what was stored be lost: %v", err) //nolint:errorlint // its meaning isn't that of the commands
		}
		return true, nil
	})
	if err != nil {
		return nil, store.Stamp{}, err
	}
	return replies, stamp, nil
}

// identify reads the reply to asking, which was sent at a time: that of a server that is the primary.
func (l *Ledger) identify(k *link, reply *goredis.Cmd, sent time.Time) (store.Stamp, error) {
	text, err := reply.Text()
	if err != nil {
		return store.Stamp{}, err
	}
	about := parseInfo(text)
	l.sees(about.replicas)
	if about.role != "master" {
		l.leave()
		return store.Stamp{}, fmt.Errorf("%s is no primary now: its role is %.20q", k.addr, about.role)
	}
	return l.stamp(k.addr, about, sent)
}

// read sends a command that reads. If replicas are waited for, it waits until they have all that was read.
func (l *Ledger) read(ctx context.Context, c command) (rows []string, stamp store.Stamp, err error) {
	commands := []command{c}
	if wait := l.wait(); len(wait) > 0 {
		commands = append(commands, command{"SET", l.names.sync(), "1"}, wait[0])
	}
	replies, stamp, err := l.exchange(ctx, commands...)
	if err != nil {
		return nil, stamp, err
	}
	if rows, err = replies[0].StringSlice(); err == nil && len(replies) > 1 {
		if err = replies[1].Err(); err == nil {
			err = l.waited(replies)
		}
	}
	return rows, stamp, err
}

// wait is what waits for the replicas, after a write on the same connection.
func (l *Ledger) wait() []command {
	if l.address.replicas == 0 || l.readOnly {
		return nil
	}
	return []command{{"WAIT", l.address.replicas, l.address.wait.Milliseconds()}}
}

// waited reads the reply to what wait sends. Its error leaves the outcome of an append unknown.
func (l *Ledger) waited(replies []*goredis.Cmd) error {
	if len(l.wait()) == 0 {
		return nil
	}
	n, err := replies[len(replies)-1].Int()
	if err != nil {
		return fmt.Errorf("wait for replicas: %v", err) //nolint:errorlint // its meaning isn't that of the write
	}
	if n < l.address.replicas {
		return fmt.Errorf("%d of %d replicas have it after %v (replicas=%d)", n, l.address.replicas, l.address.wait, l.address.replicas)
	}
	return nil
}

// atATime is how many commands are sent at once.
const atATime = 500

// members are those of a sorted set.
func (l *Ledger) members(ctx context.Context, key string) ([]string, error) {
	replies, _, err := l.exchange(ctx, command{"ZRANGE", key, 0, -1})
	if errors.Is(err, errTooMuch) {
		err = fmt.Errorf("%s: %w", key, err)
	}
	if err != nil {
		return nil, err
	}
	all, err := replies[0].StringSlice()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return all, nil
}
