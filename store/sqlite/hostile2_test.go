package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestHostileBusyTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	must(t, "Close()", l.Close(t.Context()))
	db := raw(t, path)
	execute(t, db, "PRAGMA journal_mode = DELETE")
	ro := open(t, Options{Path: path, ReadOnly: true, BusyTimeout: time.Second})
	conn, err := db.Conn(t.Context())
	must(t, "Conn", err)
	must(t, "x", documenttest.ErrorOf(conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE")))
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			time.Sleep(time.Duration(i) * 10 * time.Millisecond)
			began := time.Now()
			_, _, err := ro.Tail(t.Context(), "job", 1)
			t.Log(i, time.Since(began), err)
			if time.Since(began) > 1900*time.Millisecond {
				t.Error("waited for twice the busy timeout")
			}
		})
	}
	all.Wait()
	conn.Close()
}

func TestHostileCloseFailsWhatIsInProgress(t *testing.T) {
	l, asked := mixed(t)
	closed := make(chan error, 1)
	got := tails(t, l, asked, always(t), func() {
		go func() { closed <- l.Close(t.Context()) }()
		for l.begin() == nil {
			l.calls.Done()
		}
	})
	must(t, "Close()", <-closed)
	n := 0
	for _, a := range got {
		if a.err != nil {
			n++
		}
	}
	if n > 0 {
		t.Errorf("%d of %d tails that were called before Close failed: %v", n, len(got), got[3].err)
	}
}

func TestHostileStress(t *testing.T) {
	l, _ := inUse(t, Options{})
	var all sync.WaitGroup
	stop := time.Now().Add(4 * time.Second)
	var worst struct {
		sync.Mutex
		append, tail time.Duration
		n, m         int
	}
	for g := range 200 {
		all.Go(func() {
			name := fmt.Sprint("job", g)
			var seq int64
			for time.Now().Before(stop) {
				if g%4 == 0 {
					b := time.Now()
					must(t, "Append()", l.Append(t.Context(), storetest.Grant(name, seq+1)))
					seq++
					worst.Lock()
					worst.append = max(worst.append, time.Since(b))
					worst.m++
					worst.Unlock()
				}
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(4) == 0 {
					d := time.Duration(rand.IntN(3000)) * time.Microsecond
					time.AfterFunc(d, cancel)
				}
				before, err := l.Now(t.Context())
				must(t, "Now", err)
				b := time.Now()
				limit := rand.IntN(11)
				r, s, err := l.Tail(ctx, name, limit)
				worst.Lock()
				worst.tail = max(worst.tail, time.Since(b))
				worst.n++
				worst.Unlock()
				if err == nil {
					after, err := l.Now(t.Context())
					must(t, "Now", err)
					if s.Time.Before(before.Time) || s.Time.After(after.Time) {
						t.Errorf("stamp %v not in %v to %v", s, before, after)
					}
					if len(r) != min(limit, int(seq)) {
						t.Errorf("%d records, limit %d, seq %d", len(r), limit, seq)
					}
					for i, x := range r {
						if x.WorkerType != name || x.Seq != seq-int64(i) {
							t.Errorf("wrong record %v", x)
						}
					}
				} else if ctx.Err() == nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	t.Log("worst append", worst.append, "worst tail", worst.tail, worst.n, worst.m, "waiting", l.tails.Waiting())
	_ = store.MaxSeq
}
