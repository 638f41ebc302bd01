package postgres

import (
	"context"
	"database/sql"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
)

// relay is a way to a server, that takes some time and loses what goes over the connections that are lost.
type relay struct {
	delay time.Duration
	lost  atomic.Int64 // connections up to this one
	made  atomic.Int64
}

// through is a URI by which a server is reached through a relay.
func (r *relay) through(t *testing.T, uri string) string {
	t.Helper()
	u, err := url.Parse(uri)
	must(t, "Parse()", err)
	to := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := r.made.Add(1)
			s, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			go r.pass(n, s, c)
			go r.pass(n, c, s)
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// pass passes on what one side of a connection sends.
func (r *relay) pass(n int64, to, from net.Conn) {
	type piece struct {
		data []byte
		at   time.Time
	}
	pieces := make(chan piece, 1000)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 16<<10)
			got, err := from.Read(data)
			if err != nil {
				return
			}
			pieces <- piece{data[:got], time.Now().Add(r.delay)}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.at))
		if n > r.lost.Load() {
			_, _ = to.Write(p.data)
		}
	}
	if n > r.lost.Load() {
		_ = to.Close()
	}
}

// Many worker types begin their slots at once, and none of their statements takes long.
func TestStatementsThatQueueForOneConnectionGetOthers(t *testing.T) {
	t.Parallel()
	r := &relay{delay: 30 * time.Millisecond}
	l := initialised(t, Options{URI: r.through(t, postgrespeer.Database(t))})
	for range 3 {
		if _, _, err := l.Tail(within(t), "job", 1); err != nil {
			t.Fatalf("Tail() = %v, want nil", err)
		}
	}
	time.Sleep(wide + time.Second)
	if n := l.db.Stats().MaxOpenConnections; n != 1 {
		t.Errorf("the pool has %d connections after it was idle, want 1", n)
	}
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			if _, _, err := l.Tail(within(t), "job", 1); err != nil {
				t.Errorf("Tail() = %v, want nil", err)
			}
		})
	}
	all.Wait()
	if n := l.db.Stats().OpenConnections; n < 2 {
		t.Errorf("40 statements of 60 ms each went over %d connection, want more", n)
	}
}

// A pooler's machine is replaced: what was sent over the old connections isn't answered, and new ones work.
func TestConnectionsToAPoolerThatAreLostKeepOthersWaitingForSecondsAtMost(t *testing.T) {
	t.Parallel()
	r := &relay{}
	l := initialised(t, Options{URI: r.through(t, postgrespeer.Pooler(t, postgrespeer.Database(t), "transaction"))})
	var all sync.WaitGroup
	tails := func(limit time.Duration) {
		for range 20 {
			all.Go(func() { _, _, _ = l.Tail(documenttest.Within(t, limit), "job", 1) })
		}
		all.Wait()
	}
	l.widen()
	l.widen()
	tails(time.Minute)
	r.lost.Store(1 << 60)
	tails(brief)
	r.lost.Store(r.made.Load())
	began := time.Now()
	for {
		_, _, err := l.Tail(documenttest.Within(t, brief), "job", 1)
		took := time.Since(began)
		if err != nil && took < linger/2 {
			continue
		}
		if err != nil || took > linger/2 {
			t.Errorf("Tail() = %v after %v, want nil long before %v", err, took, linger)
		}
		return
	}
}

// One statement may take very long, such as one that waits for a standby: others go on beside it all the time.
func TestAStatementThatTakesLongKeepsNoOthersWaiting(t *testing.T) {
	t.Parallel()
	l := initialised(t, Options{URI: postgrespeer.Database(t)})
	limit := wide + 4*time.Second
	long, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = storekit.Run(long, l.core.Runner, "sleep", "", func(ctx context.Context) (none struct{}, err error) {
			return none, sqldb.Each(ctx, l.db, func(*sql.Rows) error { return nil }, `SELECT pg_sleep(60)`)
		})
	}()
	var longest time.Duration
	for began := time.Now(); time.Since(began) < limit-time.Second; time.Sleep(10 * time.Millisecond) {
		sent := time.Now()
		if _, _, err := l.Tail(within(t), "job", 1); err != nil {
			t.Errorf("Tail() = %v, want nil", err)
		}
		longest = max(longest, time.Since(sent))
	}
	<-done
	if longest > time.Second {
		t.Errorf("Tail() beside a statement that takes long took %v", longest)
	}
}
