package redis

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// lent is a client as an application may have it, with what would harm a ledger.
func lent(t testing.TB, o *goredis.Options) *goredis.Client {
	t.Helper()
	o.PoolSize, o.MaxRetries, o.Protocol, o.ReadTimeout = 1, 5, 3, cmp.Or(o.ReadTimeout, time.Millisecond)
	c := goredis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// connections are how many a server has by the name.
func connections(t testing.TB, admin *goredis.Client, name string) int {
	t.Helper()
	return strings.Count(do(t, admin, "CLIENT", "LIST"), "name="+name+" ")
}

// The client's only connection is in use all the while.
func TestCloseGivesBackTheClient(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{})
	admin, c := raw(t, s.URI()), lent(t, &goredis.Options{Addr: s.Addr(), ReadTimeout: time.Minute})
	held := c.Conn()
	must(t, "PING", held.Ping(t.Context()).Err())
	l, err := Open(t.Context(), Options{Client: c, AppName: "lent"})
	must(t, "Open()", err)
	heard, watched := make(chan string, 1), make(chan error, 1)
	go func() { watched <- l.Watch(t.Context(), func(workerType string) { heard <- workerType }) }()
	await(t, "the subscription", func() bool {
		n, err := admin.PubSubNumSub(t.Context(), l.names.channel()).Result()
		return err == nil && n[l.names.channel()] == 1
	})
	must(t, "Append()", appendTo(t, l, 1))
	release := storetest.Grant("job", 2)
	release.Kind = store.KindRelease
	must(t, "Append()", l.Append(t.Context(), release))
	select {
	case <-heard:
	case <-suites.Deadline(t).Done():
		t.Error("Watch() heard nothing")
	}
	if n := connections(t, admin, "lent"); n < 1 {
		t.Errorf("connections of the ledger = %d, want its own", n)
	}
	must(t, "Close()", l.Close(t.Context()))
	if err := <-watched; !errors.Is(err, store.ErrClosed) {
		t.Errorf("Watch() = %v after Close(), want ErrClosed", err)
	}
	await(t, "that all connections and subscriptions are given back", func() bool {
		n, err := admin.PubSubNumSub(t.Context(), l.names.channel()).Result()
		return err == nil && n[l.names.channel()] == 0 && connections(t, admin, "lent") == 0
	})
	must(t, "Close() of the connection", held.Close())
	must(t, "PING of the client after Close()", c.Ping(t.Context()).Err())
	if got := l.String(); got != "redis://"+s.Addr()+"/0" {
		t.Errorf("String() = %q, want where the client leads", got)
	}
}

func TestAClientWithSentinelsIsFollowedToTheNewPrimary(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t)
	sentinel := redispeer.StartSentinel(t, "leases", primary)
	c := goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: "leases", SentinelAddrs: []string{sentinel.Addr()}, PoolSize: 1})
	t.Cleanup(func() { _ = c.Close() })
	l := openWith(t, Options{Client: c, Replicas: 1, ReplicaWait: 20 * time.Second})
	must(t, "Append()", appendTo(t, l, 1))
	if s, err := l.Now(t.Context()); err != nil || s.Server != primary.Addr() || s.Skew != DefaultSkew {
		t.Errorf("Now() = %+v, %v, want a stamp of %s with a skew", s, err, primary.Addr())
	}
	if found := l.surveyed.Load(); found == nil || found.answered != 2 || len(found.silent()) > 0 {
		t.Errorf("the survey has found %+v, want the primary and its replica", found)
	}
	must(t, "FAILOVER", awaitFailover(t, sentinel, replica))
	time.Sleep(askAgain)
	if s, err := l.Now(t.Context()); err != nil || s.Server != replica.Addr() {
		t.Errorf("Now() = %+v, %v, want a stamp of the new primary %s", s, err, replica.Addr())
	}
	await(t, "the former primary as a replica", func() bool { return appendTo(t, l, 2) == nil })
}

// awaitFailover lets a sentinel make a replica the primary.
func awaitFailover(t *testing.T, sentinel, replica *redispeer.Server) error {
	t.Helper()
	c := raw(t, sentinel.URI())
	await(t, "that the sentinel finds the replica good", func() bool {
		return c.Do(t.Context(), "SENTINEL", "FAILOVER", "leases").Err() == nil
	})
	await(t, "that the sentinel names the new primary", func() bool {
		addr, err := c.Do(t.Context(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "leases").StringSlice()
		return err == nil && net.JoinHostPort(addr[0], addr[1]) == replica.Addr()
	})
	return nil
}

func TestAClientOfReplicasIsRefused(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t)
	sentinel := redispeer.StartSentinel(t, "leases", primary)
	o := &goredis.FailoverOptions{MasterName: "leases", SentinelAddrs: []string{sentinel.Addr()}, ReplicaOnly: true}
	await(t, "that a client finds the replica good", func() bool { // Until then it takes the primary.
		c := goredis.NewFailoverClient(o)
		defer func() { _ = c.Close() }()
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "role:slave")
	})
	c := goredis.NewFailoverClient(o)
	t.Cleanup(func() { _ = c.Close() })
	wantRefusal(t, "Append() by a client of replicas", appendTo(t, openWith(t, Options{Client: c}), 1), store.ErrRefused, "is a replica")
	c = goredis.NewClient(&goredis.Options{Addr: replica.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	wantRefusal(t, "Append() by a client of the replica", appendTo(t, openWith(t, Options{Client: c}), 1), store.ErrRefused, "is a replica")
}

// The client reads from replicas, and the ledger doesn't: it goes to the node that has the keys.
func TestAClientOfAClusterLeadsToTheNodeThatHasTheKeys(t *testing.T) {
	t.Parallel()
	first, _ := cluster(t, 8191)
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{first.Addr()}, ReadOnly: true, RouteByLatency: true, PoolSize: 1})
	t.Cleanup(func() { _ = c.Close() })
	servers := map[string]bool{}
	for _, prefix := range []string{"a", "b", "c", "d", "e", "f"} {
		l := openWith(t, Options{Client: c, Prefix: prefix})
		must(t, "Append()", appendTo(t, l, 1))
		if err := appendTo(t, l, 1); !errors.Is(err, store.ErrConflict) {
			t.Errorf("Append() again = %v, want ErrConflict", err)
		}
		s, err := l.Now(t.Context())
		must(t, "Now()", err)
		servers[s.Server] = true
		must(t, "Close()", l.Close(t.Context()))
	}
	if len(servers) != 2 {
		t.Errorf("the ledgers were on %v, want both nodes", servers)
	}
	must(t, "PING of the client after Close()", c.Ping(t.Context()).Err())
}

func TestWhatAClientCanNotDoIsRefusedByName(t *testing.T) {
	t.Parallel()
	c := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1"})
	ring := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	routed := goredis.NewFailoverClusterClient(&goredis.FailoverOptions{MasterName: "leases", SentinelAddrs: []string{"127.0.0.1:1"}})
	ask := func(context.Context) (string, error) { return "secret", nil }
	for name, o := range map[string]struct {
		options Options
		want    string
	}{
		"nothing":                      {Options{}, "set either URI or Client"},
		"both":                         {Options{URI: "redis://h", Client: c}, "set either URI or Client"},
		"a ring":                       {Options{Client: ring}, "*redis.Ring"},
		"routes by sentinels":          {Options{Client: routed}, "use NewFailoverClient"},
		"a login":                      {Options{Client: c, PasswordFunc: ask}, "a Client has its own"},
		"two passwords":                {Options{URI: "redis://h", Password: "hunter2", PasswordFunc: ask}, "PasswordFunc and Password are both given"},
		"a function besides the URI's": {Options{URI: "redis://u:hunter2@h", PasswordFunc: ask}, "either in the URI or"},
	} {
		if _, err := Open(t.Context(), o.options); err == nil || !strings.Contains(err.Error(), o.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open() with %s = %v, want an error with %q", name, err, o.want)
		}
	}
	for _, c := range []goredis.UniversalClient{c, ring, routed} {
		must(t, "Close() of a client", c.Close())
	}
}

// rotating is a server whose user worker has a password that changes.
type rotating struct {
	*redispeer.Server
	admin    *goredis.Client
	password atomic.Pointer[string]
}

func newRotating(t *testing.T) *rotating {
	t.Helper()
	s := &rotating{Server: redispeer.Start(t, redispeer.Options{})}
	s.admin = raw(t, s.URI())
	s.rotate(t, "first")
	return s
}

// rotate gives the user another password, and ends all of its connections.
func (s *rotating) rotate(t testing.TB, password string) {
	t.Helper()
	do(t, s.admin, "ACL", "SETUSER", "worker", "on", "resetpass", ">"+password, "~*", "&*", "+@all")
	s.password.Store(&password)
	_ = s.admin.Do(t.Context(), "CLIENT", "KILL", "USER", "worker").Err()
}

func (s *rotating) ask(context.Context) (string, error) { return *s.password.Load(), nil }

// streamed gives what a provider of tokens would.
type streamed struct{ *rotating }

func (s streamed) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	password, _ := s.ask(context.Background())
	return auth.NewBasicCredentials("worker", password), func() error { return nil }, nil
}

// All connections are ended each time.
func TestPasswordsMayRotate(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func(s *rotating) Options{
		"a function": func(s *rotating) Options {
			return Options{URI: s.URI(), Username: "worker", PasswordFunc: s.ask}
		},
		"a client's provider": func(s *rotating) Options {
			return Options{Client: lent(t, &goredis.Options{Addr: s.Addr(), CredentialsProviderContext: func(ctx context.Context) (string, string, error) {
				password, err := s.ask(ctx)
				return "worker", password, err
			}})}
		},
		"a client's stream": func(s *rotating) Options {
			return Options{Client: lent(t, &goredis.Options{Addr: s.Addr(), StreamingCredentialsProvider: streamed{s}})}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRotating(t)
			former := openWith(t, Options{URI: s.URI(), Username: "worker", Password: "first"})
			must(t, "Append()", former.Append(t.Context(), storetest.Grant("other", 1)))
			l := openWith(t, options(s))
			must(t, "Append()", appendTo(t, l, 1))
			for i, password := range []string{"second", "third"} {
				s.rotate(t, password)
				must(t, "Append() after a rotation", appendTo(t, l, int64(i+2)))
			}
			wantRefusal(t, "Append() with the former password", former.Append(t.Context(), storetest.Grant("other", 2)), store.ErrDenied, "WRONGPASS")
		})
	}
}

func TestAPasswordThatCanNotBeHadStoresNothing(t *testing.T) {
	t.Parallel()
	var sealed atomic.Bool
	s := newRotating(t)
	l := openWith(t, Options{URI: s.URI(), Username: "worker", PasswordFunc: func(ctx context.Context) (string, error) {
		if sealed.Load() {
			return "", errors.New("the vault is sealed")
		}
		return s.ask(ctx)
	}})
	must(t, "Append()", appendTo(t, l, 1))
	sealed.Store(true)
	s.rotate(t, "second")
	if err := appendTo(t, l, 2); !errors.Is(err, store.ErrNotStored) || !strings.Contains(err.Error(), "PasswordFunc: the vault is sealed") {
		t.Errorf("Append() = %v, want that nothing is stored, and why", err)
	}
	sealed.Store(false)
	must(t, "Append()", appendTo(t, l, 2))
}
