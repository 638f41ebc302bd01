package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.RightsChecker = (*Ledger)(nil)

// nobody is a worker type that none can be.
const nobody = "-"

// CheckRights tries the commands of an append, in a way in which they change nothing. See store.RightsChecker.
func (l *Ledger) CheckRights(ctx context.Context) error {
	_, err := storekit.Run(ctx, l.runner, "check rights", "", func(ctx context.Context) (none struct{}, err error) {
		if l.readOnly {
			return none, errReadOnly
		}
		return none, l.try(ctx, append(l.reading(), l.appending()...))
	})
	return err
}

// reading are commands of reads, appending those of appends, trimming of Trim, and attending those of the roster, such
// that they change nothing.
func (l *Ledger) reading() []command {
	nothing := call{rangeScript, []string{l.names.ledger(nobody)}, []any{"ZRANGEBYSCORE", "1", "1", 1, 0, 0, ""}}
	return []command{nothing.command(true), nothing.command(false), {"ZREVRANGEBYSCORE", l.names.ledger(nobody), 1, 1}, {"ZRANGE", l.names.types(), 0, 0}, {"ZCARD", l.names.ledger(nobody)}}
}

func (l *Ledger) appending() []command {
	all := []command{{"ZADD", l.names.ledger(nobody), "XX", 1, nobody}, {"ZADD", l.names.types(), "XX", 0, nobody}}
	if l.address.replicas > 0 {
		all = append(all, command{"SET", l.names.sync() + nobody, 1, "XX"}, command{"WAIT", 0, 1})
	}
	return all
}

func (l *Ledger) trimming() []command {
	return []command{{"ZREMRANGEBYRANK", l.names.ledger(nobody), 1, 0}}
}

func (l *Ledger) attending() []command {
	roster := l.names.roster(nobody)
	// An HSET without its last value is refused after the rights were checked.
	return []command{{"HGETALL", roster}, {"HDEL", roster, nobody}, {"HSET", roster, nobody, "", nobody}, {"ZADD", l.names.rosters(), "XX", 0, nobody}, {"ZRANGE", l.names.rosters(), 0, 0}}
}

// try sends commands, and returns the first error, which names its command.
func (l *Ledger) try(ctx context.Context, commands []command) error {
	return l.on(ctx, func(k *link) (bool, error) {
		replies, err := k.ask(ctx, commands...)
		if err != nil {
			return false, err
		}
		for i, r := range replies {
			err := r.Err()
			if err == nil || !answered(err) || commands[i][0] == "HSET" && strings.Contains(err.Error(), "wrong number of arguments") {
				continue
			}
			if codeOf(err) == "" { // nothing there
				continue
			}
			return true, fmt.Errorf("%v: %w", commands[i][0], err)
		}
		return true, nil
	})
}
