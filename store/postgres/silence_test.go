package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/postgrespeer"
)

// askOften has a listener that hears nothing ask at once, and ways are those by which a ledger listens.
const askOften = 20 * time.Millisecond

func ways(t *testing.T, uri string) map[string]Options {
	t.Helper()
	return map[string]Options{"own": {URI: uri, Table: newTable()}, "pool": {Pool: pooled(t, uri, 2), Table: newTable()}}
}

// rewatched are the hints of a ledger that is watched again whenever a watch ends, as clients do, and whose listener asks often.
func rewatched(t *testing.T, l *Ledger) <-chan string {
	t.Helper()
	l.askAfter = askOften
	told := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = l.Watch(ctx, func(workerType string) {
				select {
				case told <- workerType:
				default: // Nobody waits for it any more.
				}
			})
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return told
}

// hears waits until a notification with a text comes, which is sent past the relay again and again.
func hears(t *testing.T, uri string, l *Ledger, told <-chan string, text string) {
	t.Helper()
	ctx := within(t)
	for {
		execute(t, uri, "NOTIFY "+l.channel()+", '"+text+"'")
		again := time.After(50 * time.Millisecond)
		for waiting := true; waiting; {
			select {
			case got := <-told:
				if got == text {
					return
				}
			case <-again:
				waiting = false
			case <-ctx.Done():
				t.Fatalf("no hint of %s came", text)
			}
		}
	}
}

// What lies between may keep a connection open, and answer its keepalives, whose server has gone.
func TestAWatchIsNotDeafForGoodBehindAConnectionThatIsSilent(t *testing.T) {
	t.Parallel()
	direct := postgrespeer.Shared(t)
	r := &relay{}
	for name, o := range ways(t, r.through(t, direct)) {
		l := initialised(t, o)
		told := rewatched(t, l)
		hears(t, direct, l, told, "before")
		r.lost.Store(r.made.Load())
		t.Log(name)
		hears(t, direct, l, told, "after")
	}
}

// A connection on which nothing comes for long is asked, and stays.
func TestAListenerThatIsAskedGoesOn(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	for _, o := range ways(t, uri) {
		l := initialised(t, o)
		told := rewatched(t, l)
		type session struct {
			pid   int
			asked time.Time
		}
		now := func() (s session) {
			awaits(t, uri, listening(l), 1)
			must(t, "Scan()", past(t, uri).QueryRowContext(within(t), "SELECT coalesce(max(pid), 0), coalesce(max(query_start), now()) FROM"+listener(l)).Scan(&s.pid, &s.asked))
			return s
		}
		// On a busy machine an answer may be late, and the connection made anew: then it is tried again.
		for began, times, ctx := now(), 0, within(t); times < 3; {
			next := now()
			switch {
			case ctx.Err() != nil:
				t.Fatalf("the listener was %+v and is %+v, asked %d times: want that it is asked, and goes on", began, next, times)
			case next.pid != began.pid:
				began, times = next, 0
			case next.asked.After(began.asked):
				began, times = next, times+1
			}
		}
		hears(t, uri, l, told, "job")
	}
}
