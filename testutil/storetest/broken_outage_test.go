package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// secret is in the URI of the stores below.
const secret = "canary-4711"

// sound is a store of which nothing is wrong.
func sound() *lame {
	return &lame{
		cut:    func(_ context.Context, err error) error { return err },
		append: func(l *remote, r store.Record) (bool, error) { return true, l.data.Append(context.Background(), r) },
		close:  func(context.Context, string) error { return nil },
		watch:  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		open:   func(string) error { return nil },
		name:   "fake",
	}
}

const (
	inKills  = "what_was_acknowledged_survives_kills,_and_what_was_cut_off_settles"
	inDead   = "operations_on_a_dead_server_fail_in_time,_and_handles_work_again"
	inPaused = "operations_on_a_paused_server_end_with_their_context,_and_handles_work_again"
	inClose  = "a_handle_of_a_paused_server_is_closed_in_time"
	inWatch  = "a_watch_of_a_paused_or_dead_server_ends_with_its_context"
	inSecret = "no_error_and_no_name_shows_a_secret"
)

// outageDefects are stores that a server's death or silence brings out.
var outageDefects = []struct {
	name, seen string
	spoil      func(s *lame)
}{
	{"an append that is acknowledged and stored later", inKills, func(s *lame) {
		s.append = func(l *remote, r store.Record) (bool, error) {
			if _, err := l.data.Get(context.Background(), r.WorkerType, r.Seq); err == nil {
				return true, store.ErrConflict
			}
			_, life, _ := l.peer.seen()
			time.AfterFunc(20*time.Millisecond, func() {
				if _, now, _ := l.peer.seen(); now == life {
					l.data.Put(r)
				}
			})
			return true, nil
		}
	}},
	{"an append that is cut off and lands over a rival", inKills, func(s *lame) {
		var mu sync.Mutex
		lost := map[string]store.Record{}
		s.append = func(l *remote, r store.Record) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			key := store.Key(r.WorkerType, r.Seq)
			if first, ok := lost[key]; ok {
				l.data.Put(first)
				return true, nil
			}
			if isCut(r) {
				lost[key] = r
				return false, nil
			}
			return true, l.data.Append(context.Background(), r)
		}
	}},
	{"an append that is cut off and stored in part", inKills, func(s *lame) {
		s.append = func(l *remote, r store.Record) (bool, error) {
			if isCut(r) && r.Claim != "rival" {
				r.Metadata = ""
				l.data.Put(r)
				return false, nil
			}
			return true, l.data.Append(context.Background(), r)
		}
	}},
	{"a cut that is taken for a conflict", inKills, func(s *lame) {
		s.append = func(l *remote, r store.Record) (bool, error) {
			if isCut(r) {
				return true, store.ErrConflict
			}
			return true, l.data.Append(context.Background(), r)
		}
	}},
	{"a cut that is taken for an append that wasn't stored", inKills, func(s *lame) {
		s.cut = func(_ context.Context, err error) error {
			if errors.Is(err, errGone) {
				return store.ErrNotStored
			}
			return err
		}
	}},
	{"a dead server that is taken for one without a ledger", inDead, func(s *lame) {
		s.cut = func(context.Context, error) error { return store.ErrMissing }
	}},
	{"a dead server that is taken for an answer", inDead, func(s *lame) { s.cut = func(context.Context, error) error { return nil } }},
	{"operations on a dead server that last", inDead, func(s *lame) {
		s.cut = func(_ context.Context, err error) error {
			time.Sleep(1500 * time.Millisecond)
			return err
		}
	}},
	{"a handle that gives up on a server that was dead", inDead, func(s *lame) { s.again = func() error { return errGone } }},
	{"operations on a paused server that leave a goroutine", inPaused, func(s *lame) {
		s.cut = func(_ context.Context, err error) error {
			go func() { select {} }()
			return err
		}
	}},
	{"operations on a paused server that last", inPaused, func(s *lame) {
		s.cut = func(ctx context.Context, err error) error {
			if ctx.Err() != nil {
				time.Sleep(1500 * time.Millisecond)
			}
			return err
		}
	}},
	{"operations on a paused server whose error isn't the context's", inPaused, func(s *lame) {
		s.cut = func(context.Context, error) error { return errors.New("time-out") }
	}},
	{"a Close that waits for a paused server", inClose, func(s *lame) {
		s.close = func(_ context.Context, state string) error {
			if state == "paused" {
				time.Sleep(1500 * time.Millisecond)
			}
			return nil
		}
	}},
	{"a Close that fails for a paused server", inClose, func(s *lame) {
		s.close = func(_ context.Context, state string) error {
			if state == "paused" {
				return errGone
			}
			return nil
		}
	}},
	{"a watch that lasts", inWatch, func(s *lame) {
		s.watch = func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(1500 * time.Millisecond)
			return ctx.Err()
		}
	}},
	{"an error that shows the URI", inSecret, func(s *lame) {
		s.cut = func(_ context.Context, err error) error { return fmt.Errorf("fake://user:%s@host: %w", secret, err) }
	}},
	{"a name that shows the URI", inSecret, func(s *lame) { s.name = "fake://user:" + secret + "@host" }},
	{"a warning that shows the URI", inSecret, func(s *lame) { s.warning = "fake://user:" + secret + "@host is slow" }},
	{"a finding that shows the URI", inSecret, func(s *lame) { s.finding = "fake://user:" + secret + "@host answers" }},
	{"a finding of two lines", inSecret, func(s *lame) { s.finding = "it\nanswers" }},
	{"an Open that fails by the URI", inSecret, func(s *lame) {
		s.open = func(state string) error {
			if state == "dead" {
				return errors.New("no fake://user:" + secret + "@host")
			}
			return nil
		}
	}},
	{"an Open that waits for a dead server", inDead, func(s *lame) {
		s.open = func(state string) error {
			if state == "dead" {
				time.Sleep(1500 * time.Millisecond)
			}
			return nil
		}
	}},
	{"an Open that takes a dead server for one that refuses", inDead, func(s *lame) {
		s.open = func(state string) error {
			if state == "dead" {
				return store.ErrDenied
			}
			return nil
		}
	}},
	{"an error of two lines", inSecret, func(s *lame) {
		s.cut = func(_ context.Context, err error) error { return errors.Join(errors.New("fake"), err) }
	}},
}

// isCut reports whether an append of the case about kills is one that a defect cuts off.
func isCut(r store.Record) bool {
	return strings.HasPrefix(r.WorkerType, "writer") && strings.HasSuffix(r.WorkerType, "-0") && r.Seq == 5
}

// onFakePeer runs the suite of servers.
func onFakePeer(t *testing.T, l *lame) {
	t.Helper()
	storetest.RunPeer(t, func(*testing.T) storetest.PeerHarness {
		p := &fakePeer{data: memory.New(memory.Options{}), lame: l, state: "up", changed: make(chan struct{})}
		return storetest.PeerHarness{
			Peer: p,
			Open: func(context.Context) (store.Ledger, error) {
				state, _, _ := p.seen()
				return p.remote(), l.open(state)
			},
			Secret:   secret,
			Recovery: suites.Limit(time.Second, time.Minute),
		}
	})
}

func TestTheSuiteOfServersPassesASoundStore(t *testing.T) {
	if suites.Quick() {
		storetest.Unhurried()
	}
	onFakePeer(t, sound())
}

func TestTheSuiteOfServersNoticesEveryDefect(t *testing.T) {
	suites.Prove(t, "it starts a process for each defect")
	for _, d := range outageDefects {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBrokenServer$/^"+d.seen+"$", "-test.timeout=2m") //nolint:gosec // It is this very binary.
			cmd.Env = append(os.Environ(), breakEnv+"="+d.name)
			out, err := cmd.CombinedOutput()
			if want := "--- FAIL: TestBrokenServer/" + d.seen; err == nil || !strings.Contains(string(out), want) {
				t.Errorf("the suite on %s: %v, want %q in\n%.4000s", d.name, err, want, out)
			}
		})
	}
}

// TestBrokenServer is what TestTheSuiteOfServersNoticesEveryDefect runs in a process of its own.
func TestBrokenServer(t *testing.T) {
	name := os.Getenv(breakEnv)
	if name == "" {
		t.Skip("runs as a child of TestTheSuiteOfServersNoticesEveryDefect")
	}
	l := sound()
	for _, d := range outageDefects {
		if d.name == name {
			d.spoil(l)
		}
	}
	onFakePeer(t, l)
}
