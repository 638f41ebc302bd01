package redis

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// errReadOnly: the handle was opened for people who look.
var errReadOnly = storekit.NotStored(fmt.Errorf("%w: the ledger was opened for reading only", store.ErrDenied))

// code matches what a reply says first if it is an error of a known kind.
var code = regexp.MustCompile(`^-?([A-Z][A-Z0-9]{2,})(?: |$)`)

// inScript matches where a script of version 6 has failed. The text after it is the reply of the command.
var inScript = regexp.MustCompile(`^ERR Error running script .*?(?:@?user_script: ?\d+: )+`)

// replyText is the text of an error that the server has replied, from the code on. An error inside a script has the
// text of its command, without where it was met.
func replyText(err error) (string, bool) {
	r, ok := errors.AsType[goredis.Error](err)
	if !ok || errors.Is(err, goredis.Nil) {
		return "", false
	}
	text := r.Error()
	return strings.TrimPrefix(text[len(inScript.FindString(text)):], "-"), true
}

// codeOf is the code of a reply, or empty if an error is none. Scripts may have put a name of their own in front.
func codeOf(err error) string {
	text, ok := replyText(err)
	if !ok {
		return ""
	}
	if found := code.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return "ERR"
}

// isCode reports whether an error is a reply with one of the codes.
func isCode(err error, codes ...string) bool {
	return err != nil && slices.Contains(codes, codeOf(err))
}

// refusals are the codes of replies to an append by which the server says that it didn't run a command: it checks
// that before the first command that writes, and the script has none that may fail after the record is stored. See
// processCommand in server.c and scriptCall in script.c of Redis and Valkey.
var refusals = []string{
	"OOM",         // maxmemory is reached
	"LOADING",     // the data is being loaded after a start
	"MASTERDOWN",  // a replica without its primary, replica-serve-stale-data no
	"READONLY",    // a replica
	"NOREPLICAS",  // fewer than min-replicas-to-write
	"BUSY",        // another script has been running for longer than busy-reply-threshold
	"MISCONF",     // the last snapshot or write of the append-only file failed
	"NOSCRIPT",    // the script isn't known, though it was sent in full
	"CROSSSLOT",   // the keys are in several slots
	"MOVED",       // another node of the cluster has the keys
	"ASK",         // another node is taking over the keys
	"TRYAGAIN",    // another node is taking over the keys, and has some
	"CLUSTERDOWN", // no node has the keys, or too few nodes are there
	"WRONGTYPE",   // another program has made the key
	"NOPERM",      // rights are missing
	"NOAUTH",      // no login
	"WRONGPASS",   // a wrong one
	"EXECABORT",   // unused: there are no transactions
}

// meaning is what an error means for a ledger. After a lost connection, a time-out, or a reply that isn't known, the
// outcome of an append is unknown.
func meaning(err error) storekit.Meaning {
	text, replied := replyText(err)
	if !replied {
		return storekit.Meaning{}
	}
	c := codeOf(err)
	m := storekit.Meaning{NotStored: slices.Contains(refusals, c)}
	switch c {
	case "NOPERM", "NOAUTH", "WRONGPASS":
		m.Is = store.ErrDenied
	case "WRONGTYPE":
		m.Is = store.ErrRefused
		m.Text = "another program has overwritten a key, which has another type now: leasectl doctor names it, and says what to do"
	case "BUSY":
		m.Sound = true
	case "ERR":
		switch {
		case strings.HasPrefix(text, "ERR max number of clients"):
			m.NotStored, m.Sound = true, true
		case strings.HasPrefix(text, "ERR unknown command"), strings.HasPrefix(text, "ERR Unknown Redis command"):
			m.NotStored = true // renamed, or kept back by a managed service
		case denied(text):
			m.Is, m.NotStored = store.ErrDenied, true
		}
	}
	return m
}

// denied reports whether a reply without a code of its own is about rights: of AUTH, and of a command in a script,
// whose texts have changed from version to version.
func denied(text string) bool {
	for _, part := range []string{
		"ACL failure in script: ",             // since 7.2
		"The user executing the script can't", // up to 7.0
		"invalid password",
		"Client sent AUTH, but no password is set",
		"AUTH <password> called without any password configured",
		"unauthenticated",
	} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
