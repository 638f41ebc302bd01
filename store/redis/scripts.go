package redis

import (
	"context"
	"crypto/sha1" //nolint:gosec // by which Redis names scripts
	_ "embed"
	"encoding/hex"
)

// script is a Lua script. It is sent by its name, and in full to a server that doesn't know it yet.
type script struct{ text, name string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // by which Redis names scripts
	return script{text, hex.EncodeToString(sum[:])}
}

//go:embed append.lua
var appendText string

//go:embed range.lua
var rangeText string

//go:embed trim.lua
var trimText string

var (
	appendScript = newScript(appendText)
	rangeScript  = newScript(rangeText)
	trimScript   = newScript(trimText)
)

// call is a call of a script: keys, then arguments.
type call struct {
	script script
	keys   []string
	args   []any
}

func (c call) command(whole bool) command {
	name := command{"EVALSHA", c.script.name}
	if whole {
		name = command{"EVAL", c.script.text}
	}
	name = append(name, len(c.keys))
	for _, k := range c.keys {
		name = append(name, k)
	}
	return append(name, c.args...)
}

// run calls a script on a link, between other commands that are sent along with it. It returns the replies to all, and
// the error of the script or of the connection, which tells the two apart: usable is false after the latter.
func (k *link) run(ctx context.Context, before []command, c call, after ...command) (replies []reply, usable bool, err error) {
	for _, whole := range []bool{false, true} {
		commands := append(append(append([]command{}, before...), c.command(whole)), after...)
		got, err := k.ask(ctx, commands...)
		if err != nil {
			return nil, false, err
		}
		replies = replies[:0]
		for _, r := range got {
			v, err := r.Result()
			replies = append(replies, reply{v, err})
		}
		if err = replies[len(before)].err; !isCode(err, "NOSCRIPT") {
			return replies, true, err
		}
	}
	return replies, true, replies[len(before)].err
}

// reply is that to one command.
type reply struct {
	value any
	err   error
}
