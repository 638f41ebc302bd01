package postgres

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// A machine that takes connections and is silent mustn't take the time of each new connection.
func TestASilentHostIsTriedAfterTheOthers(t *testing.T) {
	t.Parallel()
	s := postgrespeer.Start(t, postgrespeer.Options{})
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	var taken atomic.Int32
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			taken.Add(1)
			defer func() { _ = c.Close() }()
		}
	}()
	defer func() { _ = silent.Close() }()
	l := initialised(t, Options{URI: "postgres://postgres@" + silent.Addr().String() + "," + s.Addr() + "/postgres?connect_timeout=1"})
	l.db.SetConnMaxLifetime(time.Nanosecond)
	for seq := int64(1); seq <= 3; seq++ {
		must(t, "Append()", l.Append(within(t), storetest.Grant("job", seq)))
	}
	ctx := within(t)
	l.db.SetConnMaxLifetime(0)
	go func() { _ = l.Watch(ctx, func(string) {}) }()
	awaits(t, s.URI(), `SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`, 1)
	if n := taken.Load(); n != 2 {
		t.Errorf("the silent host was tried %d times, want twice: it is the first, and the check asks it", n)
	}

	// Once the other one can't be reached, it is the next to be tried.
	s.Kill()
	for taken.Load() == 2 && ctx.Err() == nil {
		_, _ = l.Now(ctx)
	}
	if n := taken.Load(); n == 2 {
		t.Error("the silent host isn't tried again, want it to be: it may be back")
	}
	_, err = opened(t, Options{URI: "postgres://" + silent.Addr().String() + "/postgres?connect_timeout=1"}).Now(within(t))
	documenttest.Says(t, "Now() of a silent host", err, store.ErrNotStored, "no connection in 1s (connect_timeout)")
}
