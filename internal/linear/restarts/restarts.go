// Package restarts lets clients compete for a ledger while its server is killed and started
// again. Each client has a handle of its own, which lives on, as those of workers do. The
// package checks nothing: package linear does, by the history.
package restarts

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/faultstore"
)

// The size of a round, for each client.
const (
	keys  = 40
	calls = 90
)

// begun is the number of calls in a round after which the server is killed.
const begun = 100

// Between a call that failed and the client's next: so a client has calls left when the server
// is back.
const between = 100 * time.Millisecond

// down is how long the server is gone: longer than a driver that tries again is given.
const down = quick + between

// A call's reply is awaited for quick if the server dies in the round, or else for slow.
const (
	quick = 500 * time.Millisecond
	slow  = 10 * time.Second
)

// Disturbed reports whether the server dies in the i-th round: in four of eight, in each kind of plan
// once.
func Disturbed(i int) bool { return (i+i/4)%2 == 0 }

// Server is one of testutil's peers. Restart returns when it is ready again.
type Server interface {
	Kill()
	Restart()
}

// Plan is what the clients do in the i-th round.
func Plan(i int) workload.Plan { return workload.Round(i, keys, calls) }

// Round lets one client for each ledger carry out the plan of the i-th round, and kills and
// restarts the server meanwhile if the round is disturbed. It returns the history, and how many calls were answered after a restart,
// before the last client reads what is left.
func Round(ctx context.Context, ledgers []store.Ledger, i int, p workload.Plan, s Server) (h *linear.History, after int) {
	clk := clock.New()
	h = linear.NewHistory()
	patience := slow
	if Disturbed(i) {
		patience = quick
	}
	var back atomic.Bool
	var answered atomic.Int64
	workload.Compete(ctx, p, len(ledgers), func(name string, n int) *workload.Client {
		l := h.Client(name, ledgers[n])
		if name == workload.Last {
			return workload.New(l, clk, slow, name, uint64(i))
		}
		return workload.New(unhurried(l, clk, &back, &answered), clk, patience, name, uint64(i))
	}, func() {
		if !Disturbed(i) {
			return
		}
		for h.Len() < begun && ctx.Err() == nil {
			clk.Sleep(time.Millisecond)
		}
		s.Kill()
		clk.Sleep(down)
		s.Restart()
		back.Store(true)
	})
	return h, int(answered.Load())
}

// unhurried is a ledger that returns late from a call without an answer, and counts answers to calls that began when the
// server was back.
func unhurried(l store.Ledger, clk clock.Clock, back *atomic.Bool, answered *atomic.Int64) store.Ledger {
	return faultstore.NewAround(l, func(_ context.Context, _ faultstore.Call, do func() error) error {
		was := back.Load()
		err := do()
		switch {
		case err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrInvalid):
			clk.Sleep(between)
		case was:
			answered.Add(1)
		}
		return err
	})
}
