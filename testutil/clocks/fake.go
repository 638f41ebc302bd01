package clocks

import (
	"context"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// Settler can wait until everything due at a moment has happened, as
// *workerlease.Client can.
type Settler interface {
	// Settle waits for that, and returns an error if ctx ends first. If there is
	// nothing to wait for, it returns nil at once, even if ctx has ended.
	Settle(ctx context.Context) (next time.Time, err error)
}

// T is the part of testing.TB that a Fake needs. The T types of other test
// libraries, such as rapid's, have it, too.
type T interface {
	Helper()
	// Fatalf must not return.
	Fatalf(format string, args ...any)
}

// Fake is a clock that stands still until a test moves it. It is safe for
// concurrent use, but only one goroutine at a time may move it.
//
// It has no Boottime method, so an idle worker needs only a few stops for each slot,
// not one per second.
type Fake struct {
	inner
	mock *clock.Mock
	due  pending

	moving sync.Mutex

	mu      sync.Mutex
	watched []watched
}

// inner hides the mock's methods that move it.
type inner interface{ clock.Clock }

// watched is a Settler with notes about its workers.
type watched struct {
	Settler
	roll *roll // may be nil
}

var _ clock.Clock = (*Fake)(nil)

// NewFake returns a clock that shows start. The zero time stands for
// 2000-01-01T00:00:00Z, the start of bubbles.
func NewFake(start time.Time) *Fake {
	if start.IsZero() {
		start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	mock := clock.NewMock()
	mock.Set(start)
	return &Fake{inner: mock, mock: mock, due: pendingOf(mock)}
}

// Watch makes the clock wait at each stop until s has settled.
func (f *Fake) Watch(s Settler) { f.watch(watched{Settler: s}) }

func (f *Fake) watch(w watched) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watched = append(f.watched, w)
}

// NewClient returns a client on this clock and watches it. If o has a clock (such as a
// [Drifting] one that wraps this clock), the client uses that.
func (f *Fake) NewClient(ledger store.Ledger, o workerlease.ClientOptions) *workerlease.Client {
	if o.Clock == nil {
		o.Clock = f
	}
	r := &roll{next: o.Observer}
	o.Observer = r
	c := workerlease.NewClient(ledger, o)
	f.watch(watched{c, r})
	return c
}

// WithDeadline is like context.WithDeadline, by this clock.
func (f *Fake) WithDeadline(parent context.Context, d time.Time) (context.Context, context.CancelFunc) {
	return withDeadline(parent, f, d)
}

// WithTimeout is like context.WithTimeout, by this clock.
func (f *Fake) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return withDeadline(parent, f, f.Now().Add(d))
}
