package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Peer is the server of a store: processes that the suite may kill. The servers of testutil/mongopeer and
// of its siblings are some.
type Peer interface {
	// Kill ends it by SIGKILL, and waits until it is gone.
	Kill()
	// Restart starts it again on its data, at the same address, and waits until it answers.
	Restart()
	// Pause stops it, by SIGSTOP: connections stay, and nothing is answered. Resume lets it go on.
	Pause()
	Resume()
}

// PeerHarness connects the suite of [RunPeer] to a store on a server of its own, which nobody else uses.
type PeerHarness struct {
	Peer Peer
	// Open opens another handle, with connections of its own, also while the server is dead or paused. It
	// may fail then, by the end of ctx and a second at the latest. The suite closes the handle.
	Open func(ctx context.Context) (store.Ledger, error)
	// Secret is a password or key of which no part may be shown. OpenSecret is Open with a URI and
	// options that have it; the server may refuse it. Nil if Open has it already.
	Secret     string
	OpenSecret func(ctx context.Context) (store.Ledger, error)
	// Recovery is how long a handle may take to work again when its server does. Default 10 s.
	Recovery time.Duration
	// Skips announces what is skipped, and says why, as Harness.Skips does.
	Skips map[string]string
}

// RunPeer checks what a store does when its server dies or is silent: that no acknowledged record is
// lost, that all operations end in time, and that handles work again afterwards. It kills and pauses the
// server of one harness. The server must sync what it acknowledges, and its clock be this machine's. The
// suite counts goroutines, so a test that calls RunPeer isn't to be parallel, nor to have others that run.
func RunPeer(t *testing.T, start func(t *testing.T) PeerHarness) {
	t.Helper()
	h := start(t)
	if h.Peer == nil || h.Open == nil {
		t.Fatal("the harness has no Peer or no Open: both are required")
	}
	if h.Recovery == 0 {
		h.Recovery = 10 * time.Second
	}
	if h.OpenSecret == nil {
		h.OpenSecret = h.Open
	}
	says := announcement{t.Name(), h.Skips}
	for i, c := range peerCases {
		t.Run(c.name, func(t *testing.T) {
			says.heed(t)
			s := &served{PeerHarness: h, workerType: fmt.Sprintf("job-%d", i)}
			t.Cleanup(s.mend)
			c.run(t, s)
		})
	}
}

// served is the harness of a case.
type served struct {
	PeerHarness
	workerType   string
	last         atomic.Int64 // Seq that was used
	dead, paused bool
}

func (s *served) kill() {
	s.Peer.Kill()
	s.dead, s.paused = true, false
}

func (s *served) pause() {
	s.Peer.Pause()
	s.paused = true
}

// mend has the server work again.
func (s *served) mend() {
	if s.paused {
		s.Peer.Resume()
	}
	if s.dead {
		s.Peer.Restart()
	}
	s.dead, s.paused = false, false
}

// next is a grant at a key that wasn't used yet.
func (s *served) next() store.Record { return Grant(s.workerType, s.last.Add(1)) }

// handle opens a handle of a server that works.
func (s *served) handle(t *testing.T) store.Ledger {
	t.Helper()
	l, err := s.Open(within(t))
	if err != nil {
		t.Fatalf("Open() = %v, want a handle", err)
	}
	s.closing(t, l)
	return l
}

// ready opens a handle and uses it.
func (s *served) ready(t *testing.T) store.Ledger {
	t.Helper()
	l := s.handle(t)
	if err := l.Init(within(t)); err != nil {
		t.Fatalf("Init() = %v, want nil", err)
	}
	add(t, l, s.next())
	return l
}

// closing closes a handle with the test.
func (s *served) closing(t *testing.T, l store.Ledger) {
	t.Helper()
	t.Cleanup(func() { _ = s.inTime(t, "Close() at the end", l.Close) })
}

// short is the time that an operation on a server which doesn't answer is given.
const short = 300 * time.Millisecond

// What is measured: how long after its context an operation ends at the latest, and how long goroutines that a part of a case left
// may take to end.
var overtime, leaving = time.Second, patience / 8

// inTime gives an operation a short time, in which it must end.
func (s *served) inTime(t *testing.T, what string, call func(ctx context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), short)
	defer cancel()
	began := wall.Now()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	hung := wall.Timer(patience)
	defer hung.Stop()
	var err error
	select {
	case err = <-ended:
	case <-hung.C:
		t.Errorf("%s with %v to go still runs after %v: it hangs", what, short, patience)
		return context.DeadlineExceeded
	}
	if took := wall.Since(began); took > short+overtime {
		t.Errorf("%s with %v to go took %v, want at most %v more", what, short, took, overtime)
	}
	s.wantPlain(t, what, err)
	return err
}

// mostError is how long an error may be, in bytes.
const mostError = 2 << 10

// wantPlain demands of an error that it is one line, and shows no secret.
func (s *served) wantPlain(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	text := err.Error()
	if s.Secret != "" && strings.Contains(text, s.Secret) {
		t.Errorf("%s: the error shows the secret: %s", what, strings.ReplaceAll(text, s.Secret, "SECRET"))
	}
	if strings.ContainsAny(text, "\n\r") || len(text) > mostError {
		t.Errorf("%s = %q, want one line of at most %d bytes", what, text, mostError)
	}
}

// meanings are the errors by which a store says more than that the outcome is unknown.
var meanings = []error{
	store.ErrConflict, store.ErrNotFound, store.ErrInvalid, store.ErrThrottled, store.ErrRefused,
	store.ErrDenied, store.ErrMissing, store.ErrClosed,
}

// wantMeaningless demands an error of a server that didn't answer: it says nothing of the ledger.
func wantMeaningless(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s = nil, want an error: the server can't have answered", what)
	}
	if i := slices.IndexFunc(meanings, func(m error) bool { return errors.Is(err, m) }); i >= 0 {
		t.Errorf("%s = %v, which matches %q: the server can't have said so", what, err, meanings[i])
	}
}

// await calls until it works, at most for the time of recovery.
func (s *served) await(t *testing.T, what string, call func(ctx context.Context) error) {
	t.Helper()
	var err error
	for end := wall.Now().Add(s.Recovery); wall.Now().Before(end); wall.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithDeadline(t.Context(), end)
		err = call(ctx)
		cancel()
		if err == nil {
			return
		}
		s.wantPlain(t, what, err)
	}
	t.Fatalf("%s still fails after %v: %v", what, s.Recovery, err)
}
