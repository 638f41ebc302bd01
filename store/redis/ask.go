package redis

import (
	"context"
	"fmt"
)

// read calls a script that reads. Along with it goes the question of whether the server is the primary, which is
// answered first: a replica doesn't know what was appended last. If replicas are waited for, it waits until they have
// all that was read.
func (l *Ledger) read(ctx context.Context, c call) (values []any, k *link, err error) {
	before := []command{{"INFO", "replication"}}
	var after []command
	if wait := l.wait(); len(wait) > 0 {
		after = append([]command{{"SET", l.names.sync(), "1"}}, wait...)
	}
	err = l.on(ctx, func(used *link) (bool, error) {
		k = used
		replies, usable, err := k.run(ctx, before, c, after...)
		if err != nil {
			return usable, err
		}
		if err := l.primary(k, replies[0]); err != nil {
			return false, err
		}
		if len(after) > 0 {
			if err := replies[2].err; err != nil {
				return usable, err
			}
			if err := l.waited(replies[2:]); err != nil {
				return usable, err
			}
		}
		var ok bool
		if values, ok = replies[1].value.([]any); !ok {
			return usable, fmt.Errorf("odd reply to a script: %.100v", replies[1].value)
		}
		return usable, nil
	})
	return values, k, err
}

// primary is nil if a server has said that it is a primary.
func (l *Ledger) primary(k *link, r reply) error {
	if r.err != nil {
		return r.err
	}
	text, _ := r.value.(string)
	about := parseInfo(text)
	if about.replicas > 0 {
		l.copied.Store(true)
	}
	if about.role == "master" {
		return nil
	}
	l.leave()
	return fmt.Errorf("%s is no primary now: its role is %.20q", k.addr, about.role)
}

// atATime is how many commands are sent at once.
const atATime = 500

// members are those of a sorted set.
func (l *Ledger) members(ctx context.Context, key string) (all []string, err error) {
	replies, err := l.primaryAsk(ctx, command{"ZRANGE", key, 0, -1})
	if err != nil {
		return nil, err
	}
	if replies[0].err != nil {
		return nil, replies[0].err
	}
	values, _ := replies[0].value.([]any)
	for _, v := range values {
		if name, ok := v.(string); ok {
			all = append(all, name)
		}
	}
	return all, nil
}

// primaryAsk sends commands to a server that is a primary, and returns their replies. The error of a single command
// is in its reply.
func (l *Ledger) primaryAsk(ctx context.Context, commands ...command) (replies []reply, err error) {
	err = l.on(ctx, func(k *link) (bool, error) {
		got, err := k.ask(ctx, append([]command{{"INFO", "replication"}}, commands...)...)
		if err != nil {
			return false, err
		}
		replies = replies[:0]
		for _, r := range got {
			v, err := r.Result()
			if _, ok := moved(err, k.addr); ok {
				return true, err
			}
			replies = append(replies, reply{v, err})
		}
		err = l.primary(k, replies[0])
		replies = replies[1:]
		return err == nil, err
	})
	return replies, err
}
