package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// peerCase is one sentence of what RunPeer demands.
type peerCase struct {
	name string
	run  func(t *testing.T, s *served)
}

var peerCases = []peerCase{
	{"what was acknowledged survives kills, and what was cut off settles", survivesKills},
	{"operations on a dead server fail in time, and handles work again", func(t *testing.T, s *served) {
		s.outage(t, "a dead", s.kill, false)
	}},
	{"operations on a paused server end with their context, and handles work again", func(t *testing.T, s *served) {
		s.outage(t, "a paused", s.pause, true)
	}},
	{"a handle of a paused server is closed in time", func(t *testing.T, s *served) {
		for what, use := range map[string]func(l store.Ledger){
			"that is idle": func(store.Ledger) {},
			"that was used meanwhile": func(l store.Ledger) {
				_ = s.inTime(t, "Tail() of a paused server", func(ctx context.Context) error { _, _, err := l.Tail(ctx, s.workerType, 1); return err })
			},
			"with operations under way": func(l store.Ledger) {
				ctx := within(t)
				for range 8 {
					go func() { _, _, _ = l.Tail(ctx, s.workerType, 1) }()
				}
				wall.Sleep(short / 3)
			},
		} {
			l := s.ready(t)
			s.pause()
			use(l)
			if err := s.inTime(t, "Close() of a handle "+what, l.Close); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close() of a handle %s = %v, want nil or its deadline", what, err)
			}
			err := s.inTime(t, "Tail() after Close()", func(ctx context.Context) error { _, _, err := l.Tail(ctx, s.workerType, 1); return err })
			if !errors.Is(err, store.ErrClosed) {
				t.Errorf("Tail() of a handle %s, after Close = %v, want ErrClosed", what, err)
			}
			s.mend()
		}
	}},
	{"a watch of a paused or dead server ends with its context", func(t *testing.T, s *served) {
		l := s.ready(t)
		w, ok := store.As[store.Watcher](l)
		if !ok {
			t.Skip("the store gives no hints")
		}
		for _, stop := range []func(){s.pause, s.kill} {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.Watch(ctx, func(string) {}) }()
			wall.Sleep(short)
			stop()
			wall.Sleep(short)
			cancel()
			if err := s.inTime(t, "Watch(), cancelled", func(context.Context) error { return <-ended }); errors.Is(err, errors.ErrUnsupported) {
				t.Skipf("the store gives no hints here: %v", err)
			}
			s.mend()
		}
	}},
	{"no error and no name shows a secret", showsNoSecret},
}

// survivesKills kills the server in the middle of appends, again and again.
func survivesKills(t *testing.T, s *served) {
	const writers, least, kills = 4, 60, 3
	l := s.ready(t)
	for kill := range kills {
		s.works(t, "a handle after a restart", l)
		var acknowledged atomic.Int64
		var killed atomic.Bool
		var mu sync.Mutex
		var sent []attempt
		var wg sync.WaitGroup
		var running atomic.Int32
		running.Store(writers)
		ctx := within(t)
		for w := range writers {
			workerType := fmt.Sprintf("writer-%d-%d", kill, w)
			wg.Go(func() {
				defer running.Add(-1)
				for seq := int64(1); ; seq++ {
					a := attempt{record: Grant(workerType, seq)}
					a.err = l.Append(ctx, a.record)
					mu.Lock()
					sent = append(sent, a)
					mu.Unlock()
					if a.err != nil || killed.Load() { // A driver may have waited for the restart.
						return
					}
					acknowledged.Add(1)
				}
			})
		}
		for began := wall.Now(); acknowledged.Load() < least && running.Load() > 0 && wall.Since(began) < patience; wall.Sleep(time.Millisecond) {
		}
		s.kill()
		killed.Store(true)
		s.mend()
		wg.Wait()
		if n := acknowledged.Load(); n < least {
			t.Fatalf("only %d appends were acknowledged before the kill: %v", n, sent[len(sent)-1].err)
		}
		s.settle(t, sent)
	}
}

// outage uses handles while the server doesn't answer, and again when it does.
func (s *served) outage(t *testing.T, state string, stop func(), paused bool) {
	t.Helper()
	_ = s.ready(t).Close(within(t)) // What is there once for all handles is there then.
	sent := leavesNothing(t, func(t *testing.T) (sent []attempt) {
		l, idle := s.ready(t), s.ready(t)
		stop()
		late := s.opensOrFails(t)
		for _, h := range []store.Ledger{l, l, late} { // again while the handle may know already that nobody answers
			sent = append(sent, s.failing(t, state, h, paused)...)
		}
		s.mend()
		s.works(t, "a handle that was used meanwhile", l)
		s.works(t, "a handle that was idle meanwhile", idle)
		s.works(t, "a handle that was opened meanwhile", late)
		return sent
	})
	s.settle(t, sent)
}

// showsNoSecret looks at the errors of a handle whose URI has a secret, in all states of the server.
func showsNoSecret(t *testing.T, s *served) {
	if s.Secret == "" {
		t.Skip("the harness has no Secret")
	}
	for _, state := range []struct {
		name string
		stop func()
	}{{"that works", func() {}}, {"that is paused", s.pause}, {"that is dead", s.kill}} {
		state.stop()
		var l store.Ledger
		err := s.inTime(t, "Open() on a server "+state.name, func(ctx context.Context) (err error) { l, err = s.OpenSecret(ctx); return err })
		if err != nil {
			s.mend()
			continue // The error showed nothing.
		}
		s.closing(t, l)
		s.all(t, l, func(name string, call func(ctx context.Context) error) {
			_ = s.inTime(t, name+" on a server "+state.name, call)
		})
		if text, ok := l.(fmt.Stringer); ok && strings.Contains(text.String(), s.Secret) {
			t.Errorf("String() shows the secret: %s", strings.ReplaceAll(text.String(), s.Secret, "SECRET"))
		}
		for what, say := range map[string]string{"Warning()": store.Describe(l).Warning(), "Note()": store.Describe(l).Note()} {
			if strings.Contains(say, s.Secret) {
				t.Errorf("%s on a server %s shows the secret: %s", what, state.name, strings.ReplaceAll(say, s.Secret, "SECRET"))
			}
		}
		s.mend()
	}
}
