package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
)

// fakePeer is a server in this process. Its data outlives it.
type fakePeer struct {
	data *memory.Ledger
	lame *lame

	mu      sync.Mutex
	state   string // "up", "paused" or "dead"
	lives   int    // how often it was killed
	changed chan struct{}
}

func (p *fakePeer) turn(state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state = state; state == "dead" {
		p.lives++
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *fakePeer) Kill()    { p.turn("dead") }
func (p *fakePeer) Restart() { p.turn("up") }
func (p *fakePeer) Pause()   { p.turn("paused") }
func (p *fakePeer) Resume()  { p.turn("up") }

// seen is its state, which life it is in, and what ends when that changes.
func (p *fakePeer) seen() (state string, life int, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.lives, p.changed
}

// errGone is what a client has of a server that is killed in the middle.
var errGone = errors.New("the connection is gone")

// lame is what a store does that may be wrong.
type lame struct {
	// cut is how an operation fails that has no answer. It may last.
	cut func(ctx context.Context, err error) error
	// append stores a record on a server that is up. It reports whether the outcome is known.
	append func(l *remote, r store.Record) (known bool, err error)
	// again is for a handle that has met a dead server before.
	again func() error
	close func(ctx context.Context, state string) error
	watch func(ctx context.Context) error
	open  func(state string) error
	// name, warning and finding are what the store says of itself.
	name, warning, finding string
}

// remote is a handle on a fakePeer.
type remote struct {
	*faultstore.Around
	data   *memory.Ledger // a handle on what the peer has
	peer   *fakePeer
	closed atomic.Bool
	met    atomic.Bool // a dead server
}

func (p *fakePeer) remote() *remote {
	l := &remote{data: p.data.Handle(), peer: p}
	l.Around = faultstore.NewAround(l.data, func(ctx context.Context, c faultstore.Call, do func() error) error {
		if c.Op != faultstore.OpAppend {
			return l.ask(ctx, do)
		}
		return l.ask(ctx, func() error {
			time.Sleep(100 * time.Microsecond)
			known, err := p.lame.append(l, c.Record)
			time.Sleep(100 * time.Microsecond)
			if !known {
				return p.lame.cut(ctx, errGone)
			}
			return err
		})
	})
	return l
}

// ask waits until the server answers, and calls f then.
func (l *remote) ask(ctx context.Context, f func() error) error {
	for {
		if l.closed.Load() {
			return store.ErrClosed
		}
		state, life, changed := l.peer.seen()
		switch state {
		case "dead":
			l.met.Store(true)
			return l.peer.lame.cut(ctx, errors.New("connection refused"))
		case "paused":
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return l.peer.lame.cut(ctx, fmt.Errorf("no answer: %w", ctx.Err()))
			}
		}
		if l.met.Load() && l.peer.lame.again != nil {
			return l.peer.lame.again()
		}
		err := f()
		if _, now, _ := l.peer.seen(); now != life {
			return l.peer.lame.cut(ctx, errGone)
		}
		return err
	}
}

func (l *remote) String() string { return l.peer.lame.name }

func (l *remote) Describe() store.Description {
	return store.Description{Warning: func() string { return l.peer.lame.warning }, Examine: l.examine}
}

func (l *remote) examine(ctx context.Context) ([]store.Finding, error) {
	text := l.peer.lame.finding
	if err := l.Init(ctx); err != nil {
		text += ": " + err.Error()
	}
	return []store.Finding{{Check: store.CheckConnection, Level: store.LevelOK, Text: text}}, nil
}

func (l *remote) Watch(ctx context.Context, _ func(string)) error { return l.peer.lame.watch(ctx) }

func (l *remote) Close(ctx context.Context) error {
	l.closed.Store(true)
	state, _, _ := l.peer.seen()
	return errors.Join(l.peer.lame.close(ctx, state), l.data.Close(ctx))
}
