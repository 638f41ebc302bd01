package redis

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// counted is how many commands a server runs meanwhile, those inside scripts included.
func counted(t *testing.T, c *goredis.Client, do func()) int {
	t.Helper()
	count := func() int {
		text, err := c.Info(t.Context(), "stats").Result()
		must(t, "INFO", err)
		n, err := strconv.Atoi(regexp.MustCompile(`total_commands_processed:(\d+)`).FindStringSubmatch(text)[1])
		must(t, "Atoi()", err)
		return n
	}
	before := count()
	do()
	return count() - before - 1
}

// With five workers, a lease takes a tail of each, and an append.
func TestALeaseTakesFewCommands(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{})
	admin := raw(t, s.URI())
	var workers []*Ledger
	for n := range 5 {
		l := open(t, s.URI())
		must(t, "Append()", appendTo(t, l, int64(n+1)))
		must(t, "Tail()", operations["Tail"](t.Context(), l))
		workers = append(workers, l)
	}
	n := counted(t, admin, func() {
		for _, l := range workers {
			if _, s, err := l.Tail(t.Context(), "job", 2); err != nil || s.IsZero() {
				t.Errorf("Tail() = %+v, %v, want the time for free", s, err)
			}
		}
		must(t, "AppendAfter()", workers[0].AppendAfter(t.Context(), storetest.Grant("job", 6), storetest.Grant("job", 5)))
	})
	if n > 15 {
		t.Errorf("a lease takes %d commands, want 15 at most", n)
	}
	for _, c := range []struct {
		what string
		do   func() error
		most int
	}{
		{"Now()", func() error { _, err := workers[0].Now(t.Context()); return err }, 1},
		{"Append()", func() error { return appendTo(t, workers[0], 7) }, 5},
		{"Get()", func() error { _, err := workers[0].Get(t.Context(), "job", 7); return err }, 2},
	} {
		if n := counted(t, admin, func() { must(t, c.what, c.do()) }); n > c.most {
			t.Errorf("%s takes %d commands, want %d at most", c.what, n, c.most)
		}
	}
}

// The time in INFO is that of the request, as TIME is.
func TestTheTimeIsThatOfTheRequest(t *testing.T) {
	t.Parallel()
	l := open(t, shared(t))
	admin := raw(t, redispeer.Shared(t))
	for n := range 50 {
		// Servers before 7.0 take one section of INFO at a time, or all.
		must(t, "with()", l.links.with(t.Context(), func(k *link) (bool, error) { k.sections = n%2 == 0; return true, nil }))
		before, err := admin.Time(t.Context()).Result()
		must(t, "TIME", err)
		now, err := l.Now(t.Context())
		must(t, "Now()", err)
		after, err := admin.Time(t.Context()).Result()
		must(t, "TIME", err)
		if now.Time.Before(before) || now.Time.After(after) {
			t.Fatalf("Now() = %v, want it from %v to %v", now.Time, before, after)
		}
	}
}

// Where slots are far apart, no connection is kept from one to the next.
func TestIdleConnectionsAreGivenUp(t *testing.T) {
	t.Parallel()
	mock := clock.NewMock()
	uri := shared(t)
	l := openWith(t, Options{URI: uri, Clock: mock, AppName: "idle" + prefix()})
	admin := raw(t, uri)
	connections := func() int { return strings.Count(do(t, admin, "CLIENT", "LIST"), " name="+l.appName+" ") }
	must(t, "Now()", operations["Now"](t.Context(), l))
	var links []*link
	for range 4 {
		k, err := l.open(t.Context())
		must(t, "open()", err)
		links = append(links, k)
	}
	for _, k := range links {
		l.links.put(k)
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 5}, {spareTime - time.Second, 5}, {2 * time.Second, 1}, {idleTime - spareTime - 2*time.Second, 1}, {2 * time.Second, 0}} {
		mock.Add(c.after)
		await(t, fmt.Sprintf("%d connections after %v more", c.want, c.after), func() bool { return connections() == c.want })
	}
}

// What was sent to a server that doesn't answer may be done later. There is no more of it than connections that were there.
func TestLittleIsLeftBehindWhenNobodyAnswers(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{})
	l := openWith(t, Options{URI: s.URI(), AppName: "left"})
	must(t, "Append()", appendTo(t, l, 1))
	s.Pause()
	for n := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := l.Append(ctx, storetest.Grant("job", int64(n+2))); err == nil {
			t.Errorf("Append() of %d = nil by a server that is paused", n+2)
		}
		cancel()
	}
	s.Resume()
	admin := raw(t, s.URI())
	await(t, "the end of the connections", func() bool { return strings.Count(do(t, admin, "CLIENT", "LIST"), " name=left ") <= 1 })
	if n, err := admin.ZCard(t.Context(), l.names.ledger("job")).Result(); err != nil || n > 2 {
		t.Errorf("%d records, %v, were stored, want the first and one more at most", n, err)
	}
}

// Twenty rosters of a thousand workers each have more than a reply may have.
func TestRostersAreReadInFewerThanOneReplyHolds(t *testing.T) {
	t.Parallel()
	l := open(t, shared(t))
	now := time.Now().UTC().Truncate(time.Millisecond)
	const types, workers = 20, 1000
	for i := range types {
		some := make([]store.Presence, workers)
		for j := range some {
			some[j] = store.Presence{
				WorkerType: fmt.Sprint("job-", i), ID: fmt.Sprint("worker-", j), InstanceID: fmt.Sprint("worker-", j), Phase: "idle",
				Missed: strings.Repeat("m", 1000), Ineligible: strings.Repeat("i", 800), Since: now, Seen: now, Next: now,
			}
		}
		must(t, "Attend()", l.Attend(t.Context(), some))
	}
	all, err := l.Presences(t.Context(), "")
	must(t, "Presences()", err)
	documenttest.Equal(t, "presences", len(all), types*workers)

	// What another program has made there is passed over, though no reply would hold it.
	admin := raw(t, l.String())
	for i := range 5 {
		do(t, admin, "HSET", l.names.roster("job-7"), fmt.Sprint("foreign-", i), strings.Repeat("x", mostReply/4))
	}
	some, err := l.Presences(t.Context(), "job-7")
	must(t, "Presences() of a roster with 40 MiB of another program's", err)
	documenttest.Equal(t, "presences beside another program's fields", len(some), workers)
	all, err = l.Presences(t.Context(), "")
	must(t, "Presences() of all", err)
	documenttest.Equal(t, "presences", len(all), types*workers)
}
