package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// workerRights are the commands of a worker.
const workerRights = "+ping +info +eval +evalsha +pttl +zadd +zcount +zcard +zrange +zrangebyscore +zrevrangebyscore" +
	" +zremrangebyrank +hset +hdel +hgetall +hkeys +hstrlen +hmget +type +exists +publish +subscribe"

// InitScript returns what the server must be told, since Redis has nothing to create, and the rights of a worker.
func (l *Ledger) InitScript() string {
	more := ""
	if l.address.replicas > 0 {
		more += " +set +wait"
	}
	if l.address.db != 0 {
		more += " +select"
	}
	return `# Nothing is to be created. redis.conf must say, so that nothing is lost (see leasectl doctor):
#   appendonly yes
#   appendfsync always
#   maxmemory-policy noeviction
# A worker needs these rights and no others, for redis-cli (ACL SAVE keeps them):
ACL SETUSER worker on >PASSWORD ` + "~" + l.names.tag + "* resetchannels &" + l.names.channel() + " " + workerRights + more + "\n"
}

// nobody is a worker type that none can be.
const nobody = "-"

// right is what people and workers need: commands that change nothing, which are refused without it.
type right struct {
	check         string
	level         store.Level
	sound, grants string
	commands      []command
}

// allRights are all, that to read and that to append first.
func (l *Ledger) allRights() []right {
	ledger, roster := l.names.ledger(nobody), l.names.roster(nobody)
	trim := call(trimScript, []string{ledger}, 0, maxSeq, 0)
	appending := []command{trim, trim.whole(), {"ZADD", ledger, "XX", 1, nobody}, {"ZADD", l.names.types(), "XX", 0, nobody}}
	if l.address.replicas > 0 {
		appending = append(appending, command{"SET", l.names.sync() + nobody, 1, "XX"}, command{"WAIT", 0, 1})
	}
	return []right{
		{store.CheckRead, store.LevelFail, "the commands of reads are granted", "+zcard +zrange +zrangebyscore +zrevrangebyscore", []command{
			{"ZRANGEBYSCORE", ledger, 1, 1}, {"ZREVRANGEBYSCORE", ledger, 1, 1}, {"ZRANGE", l.names.types(), 0, 0}, {"ZCARD", ledger},
		}},
		{store.CheckAppend, store.LevelFail, "granted, by a ZADD that adds nothing", "+eval +evalsha +pttl +zcount +zadd, and with replicas= also +set +wait", appending},
		{store.CheckTrim, store.LevelWarn, "granted, by the removal of nothing", "+zremrangebyrank", []command{{"ZREMRANGEBYRANK", ledger, 1, 0}}},
		{store.CheckRoster, store.LevelWarn, "granted, by commands that change nothing", "+hset +hdel +hgetall +hkeys +hstrlen +hmget +zadd +zrange", []command{
			// An HSET without its last value is refused after the rights were checked.
			{"HGETALL", roster}, {"HKEYS", roster}, {"HSTRLEN", roster, nobody}, {"HMGET", roster, nobody}, {"HDEL", roster, nobody}, {"HSET", roster, nobody, "", nobody}, {"ZADD", l.names.rosters(), "XX", 0, nobody}, {"ZRANGE", l.names.rosters(), 0, 0},
		}},
	}
}

// rights are the checks of rights.
func (l *Ledger) rights() (rows []storekit.Check) {
	for _, r := range l.allRights() {
		rows = append(rows, storekit.Check{
			Name: r.check, Level: r.level, Ask: func(ctx context.Context) (string, error) { return r.sound, l.try(ctx, r.commands) },
			Grant: fmt.Sprintf("ACL SETUSER USER ~%s* %s, and then ACL SAVE or CONFIG REWRITE, which keeps it", l.names.tag, r.grants),
		})
	}
	return rows
}

// CheckRights tries the commands of an append, in a way in which they change nothing.
func (l *Ledger) CheckRights(ctx context.Context) error {
	_, err := storekit.Run(ctx, l.runner, "check rights", "", func(ctx context.Context) (none struct{}, err error) {
		if l.readOnly {
			return none, errReadOnly
		}
		all := l.allRights()
		return none, l.try(ctx, append(all[0].commands, all[1].commands...))
	})
	return err
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
			incomplete := commands[i][0] == "HSET" && err != nil && strings.Contains(err.Error(), "wrong number of arguments")
			if codeOf(err) != "" && !incomplete {
				return true, fmt.Errorf("%v: %w", commands[i][0], err)
			}
		}
		return true, nil
	})
}
