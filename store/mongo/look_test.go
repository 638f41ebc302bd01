package mongo

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// interrupt replaces a server's reply to a command while bad is set. of is the collection that the
// command names, or empty for any.
func interrupt(f *fakeServer, bad *atomic.Bool, name, of string, reply func() bson.D) {
	asBefore := f.reply
	f.reply = func(command string, raw bson.Raw) bson.D {
		on, _ := raw.Index(0).Value().StringValueOK()
		if command == name && (of == "" || on == of) && bad.Load() {
			return reply()
		}
		return asBefore(command, raw)
	}
}

// hiccups are replies of a server that can't reach another one, or is too busy, for a moment.
var hiccups = map[string]bson.D{
	"no primary":       commandError(133, "FailedToSatisfyReadPreference", `Could not find host matching read preference { mode: "primary" } for set cfg`),
	"going down":       commandError(91, "ShutdownInProgress", "the server is in quiesce mode and will shut down"),
	"elections":        commandError(10107, "NotWritablePrimary", "not primary"),
	"too slow":         commandError(202, "NetworkInterfaceExceededTimeLimit", "Request timed out"),
	"unreachable":      commandError(6, "HostUnreachable", "Connection refused"),
	"a busy Cosmos DB": commandError(codeThrottled, "TooManyRequests", "Error=16500, RetryAfterMs=34, Details='TooManyRequests (429)'"),
}

func TestAReplyThatPassesIsNoRefusal(t *testing.T) {
	t.Parallel()
	sharded := func(t *testing.T) *fakeServer { return cluster(t, "workerType") }
	for _, where := range []struct {
		name, command, of string
		serve             func(t *testing.T) *fakeServer
	}{
		{name: "the cluster's configuration", command: "find", of: "collections", serve: sharded},
		{name: "the statistics", command: "collStats", serve: sharded},
		{name: "Cosmos DB's shard key", command: "customAction", serve: func(t *testing.T) *fakeServer { return cosmosDB(t, nil) }},
		{name: "the version", command: "buildInfo", serve: func(t *testing.T) *fakeServer {
			f := serve(t, &fakeServer{reply: func(string, bson.Raw) bson.D { return nil }})
			f.greet(member(f.addr))
			return f
		}},
	} {
		for what, reply := range hiccups {
			t.Run(where.name+"/"+what, func(t *testing.T) {
				t.Parallel()
				f := where.serve(t)
				var bad atomic.Bool
				interrupt(f, &bad, where.command, where.of, func() bson.D { return reply })
				mock := clock.NewMock()
				mock.Set(time.Now())
				bad.Store(true)
				l := f.open(Options{Clock: mock})
				err := l.Append(within(t, 200*time.Millisecond), storetest.Grant("job", 1))
				if err == nil {
					t.Error("Append() before anything is known = nil, want an error")
				}
				wantNoRefusal(t, "Append() before anything is known", err)
				documenttest.Equal(t, "inserts sent", len(f.sent("insert")), 0)
				bad.Store(false)
				must(t, "Append() once it has passed", l.Append(within(t, patience), storetest.Grant("job", 1)))
				bad.Store(true)
				mock.Add(lookAgain)
				wantNoRefusal(t, "Append() with the next look", l.Append(within(t, 500*time.Millisecond), storetest.Grant("job", 2)))
				_, err = l.Now(within(t, 500*time.Millisecond))
				wantNoRefusal(t, "Now()", err)
			})
		}
	}
}

func wantNoRefusal(t *testing.T, what string, err error) {
	t.Helper()
	if errors.Is(err, store.ErrRefused) {
		t.Errorf("%s = %v, want no refusal: it passes", what, err)
	}
}

// A missing right or command doesn't appear by itself.
func TestAReplyThatDoesNotPassIsARefusal(t *testing.T) {
	t.Parallel()
	for what, reply := range map[string]bson.D{
		"no right":             commandError(codeUnauthorized, "Unauthorized", "not authorized on config to execute command"),
		"no right on Atlas":    commandError(codeAtlasError, "AtlasError", "not authorized on config to execute command"),
		"no such command":      commandError(codeCommandNotFound, "CommandNotFound", "no such command"),
		"none of Cosmos DB's":  commandError(codeCommandNotSupported, "CommandNotSupported", "Command is not supported"),
		"none of DocumentDB's": commandError(codeFeatureNotSupported, "", "Feature not supported: customAction"),
		"not implemented":      commandError(codeNotImplemented, "NotImplemented", "not implemented"),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := cosmosDB(t, nil)
			var bad atomic.Bool
			bad.Store(true)
			interrupt(f, &bad, "customAction", "", func() bson.D { return reply })
			wantSentinel(t, "Append()", f.open(Options{}).Append(within(t, patience), storetest.Grant("job", 1)), store.ErrRefused)
			must(t, "Append() where that is accepted", f.open(Options{UnsafeUnverified: true}).Append(within(t, patience), storetest.Grant("job", 1)))
		})
	}
}

// mongos fails $collStats for all shards if one of them has no member that the read preference allows.
func TestAShardWithoutAPrimaryDoesNotKeepTheOthersFromBeingCompared(t *testing.T) {
	t.Parallel()
	const ahead = 3 * time.Second
	f := cluster(t, "workerType")
	asBefore := f.reply
	var none atomic.Bool
	f.reply = func(name string, command bson.Raw) bson.D {
		of, _ := command.Index(0).Value().StringValueOK()
		if name != "aggregate" || of != DefaultCollection {
			return asBefore(name, command)
		}
		if mode, _ := command.Lookup("$readPreference", "mode").StringValueOK(); none.Load() || mode != "primaryPreferred" {
			return hiccups["no primary"]
		}
		return cursorOf(shardClock("sh1", "vm:27112", ahead), shardClock("sh2", "vm:27113", 0))
	}
	mock := clock.NewMock()
	l := f.open(Options{Clock: mock})
	for range 2 {
		s, err := l.Now(within(t, patience))
		if err != nil || s.Skew < ahead || !strings.Contains(l.Warning(), "is ahead of that of") {
			t.Errorf("Now() = %+v, %v, and Warning() = %q, want a skew of %v and a warning", s, err, l.Warning(), ahead)
		}
		// Then no member of that shard answers. The last measurement still counts.
		none.Store(true)
		mock.Add(lookAtShardsAgain)
	}
	l = f.open(Options{Clock: mock})
	s, err := l.Now(within(t, patience))
	if err != nil || s.Skew != defaultSkew || !strings.Contains(l.Warning(), "can't be compared") {
		t.Errorf("Now() of a worker that never compared shards = %+v, %v, and Warning() = %q, want a skew of %v and a warning", s, err, l.Warning(), defaultSkew)
	}
}
