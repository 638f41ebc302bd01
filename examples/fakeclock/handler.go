// Package fakeclock shows how to test code that works under a lease: Poller is
// that code, and its test goes through four slots of five minutes in a few
// milliseconds, with a clock of testutil/clocks.
//
//	go test ./examples/fakeclock
package fakeclock

import (
	"context"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/workerlease"
)

// Poller calls Poll every now and then while it holds the lease.
type Poller struct {
	// Clock is the same as that of the leasing client.
	Clock clock.Clock
	Every time.Duration
	// Poll gets the fencing token to pass on to whatever it writes to.
	Poll func(ctx context.Context, token int64)

	polling sync.WaitGroup
}

// Callbacks are for StartLeasing.
func (p *Poller) Callbacks() workerlease.Callbacks {
	return workerlease.Callbacks{LeaseAllocated: p.start, LeaseExpired: p.wait}
}

// start starts to poll. The end of ctx, at the last safe moment, ends it.
func (p *Poller) start(ctx context.Context, l workerlease.Lease) {
	p.polling.Go(func() {
		ticker := p.Clock.Ticker(p.Every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			// A tick and the end of ctx may come together.
			if l.Valid() {
				p.Poll(ctx, l.Token)
			}
		}
	})
}

// wait holds the worker back until the last poll has returned: nothing is
// released or claimed before.
func (p *Poller) wait(workerlease.Lease, workerlease.Reason) { p.polling.Wait() }
