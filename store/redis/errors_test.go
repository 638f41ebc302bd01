package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// do sends a command that must succeed.
func do(t testing.TB, c *goredis.Client, args ...any) string {
	t.Helper()
	v, err := c.Do(t.Context(), args...).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		t.Fatalf("%v = %v, want nil", args, err)
	}
	text, _ := v.(string)
	return text
}

// appendTo is an append with a deadline.
func appendTo(t testing.TB, l store.Ledger, seq int64) error {
	t.Helper()
	return l.Append(suites.Deadline(t), storetest.Grant("job", seq))
}

// wantRefusal demands that an error has a sentinel, or none but store.ErrNotStored if it is nil, says that nothing was
// stored, and names the code.
func wantRefusal(t testing.TB, what string, err, want error, code string) {
	t.Helper()
	if err == nil || !errors.Is(err, store.ErrNotStored) || !strings.Contains(err.Error(), code) || want != nil && !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v with %q, and that nothing was stored", what, err, want, code)
	}
	if want == nil {
		for _, s := range []error{store.ErrConflict, store.ErrDenied, store.ErrRefused, store.ErrMissing, store.ErrThrottled, store.ErrClosed} {
			if errors.Is(err, s) {
				t.Errorf("%s = %v, want it without %v", what, err, s)
			}
		}
	}
}

// Each refusal is provoked on a server, by an open handle; afterwards the key is still free.
func TestWhatTheServerRefusesIsSurelyNotStored(t *testing.T) {
	t.Parallel()
	worker := []any{"ACL", "SETUSER", "worker", "on", ">secret", "~{slotlease}:*", "resetchannels", "&{slotlease}:*", "+@all"}
	for _, c := range []struct {
		code  string
		flags []string
		want  error
		set   func(t *testing.T, s *redispeer.Server, admin *goredis.Client, l *Ledger) (undo func())
	}{
		{"OOM", nil, nil, func(t *testing.T, _ *redispeer.Server, admin *goredis.Client, _ *Ledger) func() {
			do(t, admin, "CONFIG", "SET", "maxmemory", "1")
			return func() { do(t, admin, "CONFIG", "SET", "maxmemory", "0") }
		}},
		{"READONLY", nil, nil, func(t *testing.T, _ *redispeer.Server, admin *goredis.Client, _ *Ledger) func() {
			do(t, admin, "REPLICAOF", "127.0.0.1", "1")
			return func() { do(t, admin, "REPLICAOF", "NO", "ONE") }
		}},
		{"MASTERDOWN", nil, nil, func(t *testing.T, _ *redispeer.Server, admin *goredis.Client, _ *Ledger) func() {
			do(t, admin, "CONFIG", "SET", "replica-serve-stale-data", "no")
			do(t, admin, "REPLICAOF", "127.0.0.1", "1")
			return func() { do(t, admin, "REPLICAOF", "NO", "ONE") }
		}},
		{"NOREPLICAS", nil, nil, func(t *testing.T, _ *redispeer.Server, admin *goredis.Client, _ *Ledger) func() {
			do(t, admin, "CONFIG", "SET", "min-replicas-to-write", "1")
			return func() { do(t, admin, "CONFIG", "SET", "min-replicas-to-write", "0") }
		}},
		{"MISCONF", nil, nil, func(t *testing.T, s *redispeer.Server, admin *goredis.Client, _ *Ledger) func() {
			do(t, admin, "CONFIG", "SET", "save", "3600 1000")
			must(t, "Mkdir()", os.MkdirAll(filepath.Join(s.Data(), "dump.rdb", "taken"), 0o700)) // A snapshot can't take its place.
			do(t, admin, "BGSAVE")
			await(t, "a failed snapshot", func() bool {
				return strings.Contains(do(t, admin, "INFO", "persistence"), "rdb_last_bgsave_status:err")
			})
			return func() { do(t, admin, "CONFIG", "SET", "save", "") }
		}},
		{"LOADING", []string{"--enable-debug-command", "yes"}, nil, func(t *testing.T, s *redispeer.Server, admin *goredis.Client, _ *Ledger) func() {
			for n := range 40 {
				do(t, admin, "SET", n, strings.Repeat(rand.Text(), 100))
			}
			do(t, admin, "CONFIG", "SET", "rdbcompression", "no")
			do(t, admin, "CONFIG", "SET", "key-load-delay", "50000") // in µs
			do(t, admin, "CONFIG", "SET", "loading-process-events-interval-bytes", "1024")
			other := raw(t, s.URI())
			go other.Do(context.WithoutCancel(t.Context()), "DEBUG", "RELOAD")
			await(t, "loading", func() bool { return strings.Contains(do(t, admin, "INFO", "persistence"), "\nloading:1") })
			return func() {
				await(t, "the end of loading", func() bool { return strings.Contains(do(t, admin, "INFO", "persistence"), "\nloading:0") })
			}
		}},
		{"BUSY", []string{"--lua-time-limit", "50"}, nil, func(t *testing.T, s *redispeer.Server, admin *goredis.Client, _ *Ledger) func() {
			other := raw(t, s.URI())
			go other.Do(context.WithoutCancel(t.Context()), "EVAL", "while true do end", 0)
			await(t, "a busy server", func() bool { return goredis.HasErrorPrefix(admin.Do(t.Context(), "PING").Err(), "BUSY") })
			return func() {
				do(t, admin, "SCRIPT", "KILL")
				await(t, "the end of the script", func() bool { return admin.Do(t.Context(), "PING").Err() == nil })
			}
		}},
		{"NOPERM", nil, store.ErrDenied, func(t *testing.T, _ *redispeer.Server, admin *goredis.Client, _ *Ledger) func() {
			do(t, admin, "ACL", "SETUSER", "worker", "-evalsha", "-eval")
			return func() { do(t, admin, "ACL", "SETUSER", "worker", "+evalsha", "+eval") }
		}},
		{"access denied", nil, store.ErrDenied, func(t *testing.T, _ *redispeer.Server, admin *goredis.Client, _ *Ledger) func() {
			do(t, admin, "ACL", "SETUSER", "worker", "-zadd")
			return func() { do(t, admin, "ACL", "SETUSER", "worker", "+zadd") }
		}},
		{"WRONGPASS", nil, store.ErrDenied, func(t *testing.T, _ *redispeer.Server, admin *goredis.Client, l *Ledger) func() {
			do(t, admin, "ACL", "SETUSER", "worker", "resetpass", ">another")
			l.links.renew()
			return func() { do(t, admin, "ACL", "SETUSER", "worker", ">secret") }
		}},
		{"another type", nil, store.ErrRefused, func(t *testing.T, _ *redispeer.Server, admin *goredis.Client, l *Ledger) func() {
			do(t, admin, "RENAME", l.names.ledger("job"), "aside")
			do(t, admin, "SET", l.names.ledger("job"), "mine")
			return func() { do(t, admin, "RENAME", "aside", l.names.ledger("job")) }
		}},
		{"another type", nil, store.ErrRefused, func(t *testing.T, _ *redispeer.Server, admin *goredis.Client, l *Ledger) func() {
			do(t, admin, "RENAME", l.names.ledger("job"), "aside") // The first record of a ledger names its worker type.
			do(t, admin, "SET", l.names.types(), "mine")
			return func() {
				do(t, admin, "DEL", l.names.types())
				do(t, admin, "RENAME", "aside", l.names.ledger("job"))
			}
		}},
		{"time to live", nil, store.ErrRefused, func(t *testing.T, _ *redispeer.Server, admin *goredis.Client, l *Ledger) func() {
			do(t, admin, "EXPIRE", l.names.ledger("job"), 1000)
			return func() { do(t, admin, "PERSIST", l.names.ledger("job")) }
		}},
		{"another program", nil, nil, func(t *testing.T, _ *redispeer.Server, admin *goredis.Client, l *Ledger) func() {
			r := storetest.Grant("job", 2)
			plant(t, l, admin, "job", "77", encoded(t, r))
			return func() { do(t, admin, "ZREM", l.names.ledger("job"), encoded(t, r)) }
		}},
		{"refused", nil, nil, func(t *testing.T, s *redispeer.Server, admin *goredis.Client, _ *Ledger) func() {
			s.Kill()
			return func() {
				s.Restart()
				do(t, admin, worker...)
			}
		}},
	} {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			s := redispeer.Start(t, redispeer.Options{Flags: c.flags})
			admin := raw(t, s.URI())
			do(t, admin, worker...)
			l := open(t, strings.Replace(s.URI(), "redis://", "redis://worker:secret@", 1))
			must(t, "Append()", appendTo(t, l, 1))
			undo := c.set(t, s, admin, l)
			wantRefusal(t, "Append() meanwhile", appendTo(t, l, 2), c.want, c.code)
			undo()
			if _, err := l.Get(t.Context(), "job", 2); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("Get() afterwards = %v, want that nothing was stored", err)
			}
			must(t, "Append() afterwards", appendTo(t, l, 2))
		})
	}
}

// await waits for something to happen on a server.
var await = suites.Eventually

// replied is an error as the driver gives it.
type replied string

func (e replied) Error() string { return string(e) }
func (replied) RedisError()     {}

// Texts of versions that aren't there to be provoked, from their sources.
func TestTheMeaningsOfReplies(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		is        error
		notStored bool
	}{
		// 6.2: scripting.c, luaRedisGenericCommand and evalGenericCommand.
		"ERR Error running script (call to f_5c1b): @user_script:14: @user_script: 14: -READONLY You can't write against a read only replica. ":             {nil, true},
		"ERR Error running script (call to f_5c1b): @user_script:14: @user_script: 14: -OOM command not allowed when used memory > 'maxmemory'. ":           {nil, true},
		"ERR Error running script (call to f_5c1b): @user_script:14: -MISCONF Errors writing to the AOF file: No space left on device ":                     {nil, true},
		"ERR Error running script (call to f_5c1b): @user_script:14: WRONGTYPE Operation against a key holding the wrong kind of value ":                    {store.ErrRefused, true},
		"ERR Error running script (call to f_5c1b): @user_script:14: @user_script: 14: The user executing the script can't run this command or subcommand ": {store.ErrDenied, true},
		"ERR Error running script (call to f_5c1b): @user_script:14: @user_script: 14: -NOREPLICAS Not enough good replicas to write. ":                     {nil, true},
		"NOPERM The user executing the script can't access at least one of the keys mentioned in the command arguments script: 0a1b, on @user_script:14.":   {store.ErrDenied, true},
		"ERR ACL failure in script: User worker has no permissions to run the 'zadd' command script: 0a1b, on @user_script:14.":                             {store.ErrDenied, true},
		"CROSSSLOT Keys in request don't hash to the same slot":                                                                                             {nil, true},
		"ASK 3999 127.0.0.1:6381":                                                          {nil, true},
		"TRYAGAIN Multiple keys request during rehashing of slot":                          {nil, true},
		"NOAUTH Authentication required.":                                                  {store.ErrDenied, true},
		"ERR invalid password":                                                             {store.ErrDenied, true},
		"ERR max number of clients reached":                                                {nil, true},
		"ERR unknown command 'EVALSHA', with args beginning with: ":                        {nil, true},
		"ERR Unknown Redis command called from script script: 0a1b, on @user_script:14.":   {nil, true},
		"ERR something new":                                                                {nil, false},
		"UNKNOWN something new":                                                            {nil, false},
		"UNKILLABLE Sorry the script already executed write commands against the dataset.": {nil, false},
	} {
		if m := meaning(replied(text)); !errors.Is(m.Is, want.is) || m.NotStored != want.notStored {
			t.Errorf("meaning(%q) = %v, nothing stored %v, want %v, %v", text, m.Is, m.NotStored, want.is, want.notStored)
		}
	}
	for _, err := range []error{io.EOF, context.DeadlineExceeded, errLost, errors.New("READONLY is not a reply here"), goredis.Nil} {
		if m := meaning(err); m.Is != nil || m.NotStored {
			t.Errorf("meaning(%v) = %+v, want nothing: the outcome is unknown", err, m)
		}
	}
}

// encoded is a document as it is stored.
func encoded(t testing.TB, r store.Record) string {
	t.Helper()
	l := open(t, shared(t))
	must(t, "Append()", l.Append(t.Context(), r))
	members, err := raw(t, redispeer.Shared(t)).ZRange(t.Context(), l.names.ledger(r.WorkerType), 0, -1).Result()
	if err != nil || len(members) != 1 {
		t.Fatalf("ZRANGE = %q, %v, want one document", members, err)
	}
	return members[0]
}

// After a restart the idle connections are dead, which no operation notices.
func TestARestartedServerCostsNoError(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{})
	l := open(t, s.URI())
	must(t, "Append()", appendTo(t, l, 1))
	s.Restart()
	must(t, "Append() afterwards", appendTo(t, l, 2))
	r, err := l.Get(t.Context(), "job", 1)
	if err != nil || r != storetest.Grant("job", 1) {
		t.Errorf("Get() of an append before = %+v, %v, want the record", r, err)
	}
	do(t, raw(t, s.URI()), "SCRIPT", "FLUSH")
	must(t, "Append() without the script", appendTo(t, l, 3))
}

// An empty list would say that there are no ledgers.
func TestWorkerTypesThatCannotBeCountedAreAnError(t *testing.T) {
	t.Parallel()
	uri := shared(t)
	must(t, "Append()", appendTo(t, open(t, uri), 1))
	user := strings.ReplaceAll(prefix(), "-", "")
	do(t, raw(t, uri), "ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all", "-zcard")
	types, err := openWith(t, Options{URI: uri, Username: user, Password: "secret"}).WorkerTypes(t.Context())
	if !errors.Is(err, store.ErrDenied) {
		t.Errorf("WorkerTypes() without ZCARD = %q, %v, want %v", types, err, store.ErrDenied)
	}
}

// cluster-preferred-endpoint-type unknown-endpoint: replies name no host.
func TestAClusterThatNamesNoHostMeansTheNodesOwn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"MOVED 7 :6380":                 "10.0.0.1:6380",
		"MOVED 7 10.0.0.2:6379":         "10.0.0.2:6379",
		"MOVED 7 leases.example:6379":   "leases.example:6379",
		"MOVED 7 2001:db8::1:6379":      "2001:db8::1:6379",
		"ERR wrong number of arguments": "",
	} {
		if got, ok := moved(replied(text), "10.0.0.1:6379"); got != want || ok != (want != "") {
			t.Errorf("moved(%q) = %q, %v, want %q", text, got, ok, want)
		}
	}
}
