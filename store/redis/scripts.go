package redis

import (
	"crypto/sha1" //nolint:gosec // by which Redis names scripts
	_ "embed"
	"encoding/hex"
)

//go:embed append.lua
var appendScript string

//go:embed trim.lua
var trimScript string

// scripts are the texts of the scripts by the names under which a server keeps them.
var scripts = map[string]string{nameOf(appendScript): appendScript, nameOf(trimScript): trimScript}

func nameOf(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // by which Redis names scripts
	return hex.EncodeToString(sum[:])
}

// call is a call of a script by its name: keys, then arguments.
func call(script string, keys []string, args ...any) command {
	c := command{"EVALSHA", nameOf(script), len(keys)}
	for _, key := range keys {
		c = append(c, key)
	}
	return append(c, args...)
}

// whole is a call with the text of its script, for a server that doesn't know it.
func (c command) whole() command {
	return append(command{"EVAL", scripts[c[1].(string)]}, c[2:]...)
}
