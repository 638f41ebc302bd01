package redis

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

const (
	// mostLinks is how many connections a ledger has at a time, without that of a watch.
	mostLinks = 16
	// idleTime is how long one idle connection is kept, and spareTime how long more are: from one slot to the next where slots are
	// short.
	idleTime  = time.Minute
	spareTime = 10 * time.Second
)

// pool has the links of a ledger.
type pool struct {
	clock clock.Clock
	open  func(ctx context.Context) (*link, error)
	turns chan struct{} // one for each link that may be in use

	mu     sync.Mutex
	idle   []*link // in the order of their use
	sweep  *clock.Timer
	era    int // links of an earlier one aren't used again
	closed bool
}

func newPool(c clock.Clock, open func(ctx context.Context) (*link, error)) *pool {
	return &pool{clock: c, open: open, turns: make(chan struct{}, mostLinks)}
}

// with lends a link to an operation, and keeps it for others unless the operation says that it can't be used any more.
// An operation that met a link which was closed while it was idle is begun again.
func (p *pool) with(ctx context.Context, do func(k *link) (usable bool, err error)) error {
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.turns }()
	for {
		k := p.take()
		fresh := k == nil
		if fresh {
			era := p.current()
			var err error
			if k, err = p.open(ctx); err != nil {
				return err
			}
			k.era = era
		}
		usable, err := do(k)
		if usable && ctx.Err() == nil {
			p.put(k)
			return err
		}
		k.close()
		if fresh || !errors.Is(err, errLost) || ctx.Err() != nil {
			return err
		}
	}
}

// take takes an idle link, or returns nil.
func (p *pool) take() *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	k := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return k
}

// drop closes the links that have been idle for long, and has that done again when the next may be. The caller holds mu.
func (p *pool) drop() {
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
	for len(p.idle) > 0 {
		lasts := spareTime
		if len(p.idle) == 1 {
			lasts = idleTime
		}
		if left := lasts - p.clock.Since(p.idle[0].used); left > 0 {
			p.sweep = p.clock.AfterFunc(left, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.drop()
			})
			return
		}
		p.idle[0].close()
		p.idle = p.idle[1:]
	}
}

func (p *pool) put(k *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || k.era != p.era {
		k.close()
		return
	}
	k.used = p.clock.Now()
	p.idle = append(p.idle, k)
	p.drop()
}

func (p *pool) current() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.era
}

// renew closes the idle links, and lets no link be used again that there is now: another server has the ledger.
func (p *pool) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.era++
	for _, k := range p.idle {
		k.close()
	}
	p.idle = nil
	p.drop()
}

// close closes the idle links, and lets others be closed when they aren't in use any more.
func (p *pool) close() error {
	p.renew()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}
