package mongo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
)

func TestStampNamesServerAndSkew(t *testing.T) {
	t.Parallel()
	shard := cursorOf(bson.D{
		{Key: "ns", Value: "WorkerProcess.WorkerLeases"},
		{Key: "host", Value: "shard1.example:27018"},
		{Key: "localTime", Value: bson.DateTime(1_700_000_099_999)},
	})
	const routerTime, shardTime = 1_700_000_000_123, 1_700_000_099_999
	for _, c := range []struct {
		name     string
		greeting func(addr string) bson.D
		foreign  bool // a client that isn't ours
		skew     time.Duration
		server   func(addr string) string
		at       int64
		wantSkew time.Duration
		clock    string // the name of the clock, if it is always the same
	}{
		{name: "standalone", server: func(a string) string { return a }, at: routerTime},
		{name: "standalone, a skew asked for", skew: time.Second, server: func(a string) string { return a }, at: routerTime, wantSkew: time.Second},
		{name: "standalone, by the caller's client", foreign: true, server: func(string) string { return "mongodb" }, at: routerTime},
		{name: "member", greeting: member, server: func(a string) string { return a }, at: routerTime, wantSkew: defaultSkew},
		{name: "member, a skew asked for", greeting: member, skew: time.Nanosecond, server: func(a string) string { return a }, at: routerTime, wantSkew: time.Nanosecond},
		{name: "member, by the caller's client", greeting: member, foreign: true, server: func(a string) string { return a }, at: routerTime, wantSkew: defaultSkew},
		{
			name: "member at another address",
			greeting: func(string) bson.D {
				return append(member("db1.internal:27017")[3:], bson.E{Key: "me", Value: "db1.internal:27017"})
			},
			server: func(a string) string { return a + " (db1.internal:27017)" }, at: routerTime,
		},
		{
			name: "member that says which process it is",
			greeting: func(string) bson.D {
				return append(member("db1.internal:27017")[3:], bson.E{Key: "me", Value: "db1.internal:27017"},
					bson.E{Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: bson.ObjectID{11: 1}}, {Key: "counter", Value: int64(0)}}})
			},
			server: func(a string) string { return a + " (db1.internal:27017)" }, at: routerTime, clock: "db1.internal:27017/000000000000000000000001",
		},
		{
			name: "router", greeting: func(string) bson.D { return router() },
			server: func(string) string { return "shard1.example:27018" }, at: shardTime, wantSkew: defaultSkew,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"aggregate": shard})})
			if c.greeting != nil {
				f.greet(c.greeting(f.addr))
			}
			o := Options{ServerSkew: c.skew}
			if c.foreign {
				o.Client = dial(t, "mongodb://"+f.addr)
			}
			l := f.open(o)
			want := store.Stamp{Time: store.FromMillis(c.at), Granularity: time.Millisecond, Skew: c.wantSkew, Server: c.server(f.addr), Clock: c.clock}
			for range 2 {
				if got, err := l.Now(within(t, patience)); err != nil || got != want {
					t.Errorf("Now() = %+v, %v, want %+v", got, err, want)
				}
			}
		})
	}
}

func TestNowThroughARouterAsksTheShard(t *testing.T) {
	t.Parallel()
	one := bson.D{{Key: "host", Value: "shard1:27018"}, {Key: "localTime", Value: bson.DateTime(1_700_000_099_999)}}
	for _, c := range []struct {
		name  string
		reply bson.D
		want  error
		ok    bool
	}{
		{name: "one shard", reply: cursorOf(one), ok: true},
		{name: "two shards", reply: cursorOf(one, one), want: store.ErrRefused},
		{name: "no collection", reply: commandError(codeNamespaceNotFound, "NamespaceNotFound", "no such collection"), want: store.ErrMissing},
		{name: "no reply", reply: cursorOf(), want: store.ErrMissing},
		{name: "no right", reply: commandError(codeUnauthorized, "Unauthorized", "not authorized"), want: store.ErrDenied},
		{name: "no host", reply: cursorOf(one[1:])},
		{name: "no time", reply: cursorOf(one[:1])},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{greeting: router(), reply: answers(map[string]bson.D{"aggregate": c.reply})})
			s, err := f.open(Options{}).Now(within(t, patience))
			if c.ok {
				if err != nil || s.Server != "shard1:27018" {
					t.Errorf("Now() = %+v, %v, want a stamp of the shard", s, err)
				}
				if level, _ := f.sent("aggregate")[0].Lookup("readConcern", "level").StringValueOK(); level != "local" {
					t.Errorf("$collStats has read concern %q, want local: it takes no other", level)
				}
				return
			}
			wantSentinel(t, "Now()", err, c.want)
		})
	}
}

func TestASecondaryIsNotAskedForTheTime(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{greeting: bson.D{{Key: "ismaster", Value: false}, {Key: "isWritablePrimary", Value: false}, {Key: "secondary", Value: true}, {Key: "setName", Value: "rs0"}}})
	l := f.open(Options{URI: "mongodb://" + f.addr + "/?directConnection=true"})
	for name, call := range map[string]func() error{
		"Now":  func() error { _, err := l.Now(within(t, patience)); return err },
		"Tail": func() error { _, _, err := l.Tail(within(t, patience), "job", 1); return err },
	} {
		if err := call(); err == nil || errors.Is(err, store.ErrRefused) {
			t.Errorf("%s() of a secondary = %v, want an error, since it may become the primary", name, err)
		}
	}
}

// At an ordered step-down the driver takes the former primary for one for a moment.
func TestAPrimaryThatHasJustSteppedDownIsAskedOnceMore(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.greet(member(f.addr))
	for name, call := range map[string]func(l *Ledger) error{
		"Tail": func(l *Ledger) error { _, _, err := l.Tail(within(t, patience), "job", 1); return err },
		"Now":  func(l *Ledger) error { _, err := l.Now(within(t, patience)); return err },
	} {
		l := f.open(Options{URI: "mongodb://" + f.addr + "/?replicaSet=rs0"})
		f.steps.Store(2)
		if err := call(l); err == nil || !strings.Contains(err.Error(), "is not the primary: wait for the election of another") || errors.Is(err, store.ErrRefused) {
			t.Errorf("%s() while there is no other = %v, want an error that may pass, and says so", name, err)
		}
		f.steps.Store(1)
		must(t, name+"() by the next primary", call(l))
		if f.steps.Load() > 0 {
			t.Errorf("%s() has asked nobody", name)
		}
	}
}

// The error that there is no primary says more than that of a deadline, and a clock that stands ends no wait.
func TestNobodyWaitsForAnotherPrimaryWithoutTimeForIt(t *testing.T) {
	t.Parallel()
	mock := clock.NewMock()
	mock.Set(time.Now().Add(24 * time.Hour)) // The driver goes by the real clock, and has time.
	f := serve(t, &fakeServer{})
	f.greet(member(f.addr))
	for name, within := range map[string]time.Duration{
		"less time than the wait":        secondTry - time.Millisecond,
		"no time after the wait":         secondTry + time.Millisecond,
		"less time after it than for it": 2*secondTry - time.Millisecond,
		"no deadline":                    0,
	} {
		for what, call := range map[string]func(ctx context.Context, l *Ledger) error{
			"Tail": func(ctx context.Context, l *Ledger) error { _, _, err := l.Tail(ctx, "job", 1); return err },
			"Now":  func(ctx context.Context, l *Ledger) error { _, err := l.Now(ctx); return err },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			if within > 0 {
				ctx, cancel = context.WithDeadline(t.Context(), mock.Now().Add(within))
			}
			stop := time.AfterFunc(patience, cancel) // The clock stands.
			l := f.open(Options{URI: "mongodb://" + f.addr + "/?replicaSet=rs0", Clock: mock})
			f.steps.Store(2)
			if err := call(ctx, l); err == nil || !strings.Contains(err.Error(), "is not the primary: wait for the election of another") {
				t.Errorf("%s() with %s = %v, want that the server is not the primary", what, name, err)
			}
			if n := f.steps.Load(); n != 1 {
				t.Errorf("%s() with %s has asked the member %d times, want 1", what, name, 2-n)
			}
			if ctx.Err() != nil {
				t.Errorf("%s() with %s has waited until its context ended", what, name)
			}
			stop.Stop()
			cancel()
		}
	}
}

// In an election all workers of a process ask at once: they wait together.
func TestOneWaitForAnotherPrimaryIsEnoughForAll(t *testing.T) {
	t.Parallel()
	mock := clock.NewMock()
	mock.Set(time.Now())
	f := serve(t, &fakeServer{})
	f.greet(member(f.addr))
	f.steps.Store(1000)
	l := f.open(Options{URI: "mongodb://" + f.addr + "/?replicaSet=rs0", Clock: mock})
	ctx, cancel := context.WithDeadline(t.Context(), mock.Now().Add(24*time.Hour))
	defer cancel()
	const callers = 5
	ended := make(chan error, callers)
	for range callers {
		go func() {
			_, _, err := l.Tail(ctx, "job", 1)
			ended <- err
		}()
	}
	stood := suites.Deadline(t).Done()
	for n := 0; n < callers; {
		select {
		case err := <-ended:
			if n++; err == nil {
				t.Error("Tail() without a primary = nil")
			}
		case <-time.After(time.Millisecond):
			l.fitness.mu.Lock()
			waited := l.fitness.waits > 0
			l.fitness.mu.Unlock()
			if n == 0 && !waited {
				mock.Add(secondTry / 10) // From the end of the first wait on, the clock stands.
			}
		case <-stood:
			t.Fatalf("%d of %d callers have ended, and the others wait again", n, callers)
		}
	}
}

func TestAWaitForAnotherPrimaryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.greet(member(f.addr))
	l := f.open(Options{URI: "mongodb://" + f.addr + "/?replicaSet=rs0", Clock: clock.NewMock()}) // It stands.
	f.steps.Store(2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := l.Now(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("Now() by a clock that stands = %v, with its context %v, want an error at the end of that", err, ctx.Err())
	}
}

func TestHelloWithoutATimeIsAnError(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]bson.D{
		"missing": {{Key: "ok", Value: 1.0}},
		"text":    {{Key: "localTime", Value: "noon"}},
	} {
		raw, err := bson.Marshal(d)
		must(t, "Marshal()", err)
		if g, err := greet("db1:27017", raw); err == nil {
			t.Errorf("greet() with localTime %s = %+v, want an error", name, g)
		}
	}
}
