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
	*memory.Ledger
	peer   *fakePeer
	closed atomic.Bool
	met    atomic.Bool // a dead server
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

func (l *remote) Init(ctx context.Context) error {
	return l.ask(ctx, func() error { return l.Ledger.Init(ctx) })
}

func (l *remote) Append(ctx context.Context, r store.Record) error {
	return l.ask(ctx, func() error {
		time.Sleep(100 * time.Microsecond)
		known, err := l.peer.lame.append(l, r)
		time.Sleep(100 * time.Microsecond)
		if !known {
			return l.peer.lame.cut(ctx, errGone)
		}
		return err
	})
}

func (l *remote) Get(ctx context.Context, workerType string, seq int64) (r store.Record, err error) {
	err = l.ask(ctx, func() (err error) { r, err = l.Ledger.Get(ctx, workerType, seq); return err })
	return r, err
}

func (l *remote) Tail(ctx context.Context, workerType string, limit int) (all []store.Record, s store.Stamp, err error) {
	err = l.ask(ctx, func() (err error) { all, s, err = l.Ledger.Tail(ctx, workerType, limit); return err })
	return all, s, err
}

func (l *remote) Page(ctx context.Context, workerType string, after int64, limit int) (all []store.Record, err error) {
	err = l.ask(ctx, func() (err error) { all, err = l.Ledger.Page(ctx, workerType, after, limit); return err })
	return all, err
}

func (l *remote) Trim(ctx context.Context, workerType string, before int64) (n int, err error) {
	err = l.ask(ctx, func() (err error) { n, err = l.Ledger.Trim(ctx, workerType, before); return err })
	return n, err
}

func (l *remote) WorkerTypes(ctx context.Context) (all []string, err error) {
	err = l.ask(ctx, func() (err error) { all, err = l.Ledger.WorkerTypes(ctx); return err })
	return all, err
}

func (l *remote) Now(ctx context.Context) (s store.Stamp, err error) {
	err = l.ask(ctx, func() (err error) { s, err = l.Ledger.Now(ctx); return err })
	return s, err
}

func (l *remote) Attend(ctx context.Context, all []store.Presence) error {
	return l.ask(ctx, func() error { return l.Ledger.Attend(ctx, all) })
}

func (l *remote) Leave(ctx context.Context, workerType string, ids []string) error {
	return l.ask(ctx, func() error { return l.Ledger.Leave(ctx, workerType, ids) })
}

func (l *remote) Presences(ctx context.Context, workerType string) (all []store.Presence, err error) {
	err = l.ask(ctx, func() (err error) { all, err = l.Ledger.Presences(ctx, workerType); return err })
	return all, err
}

func (l *remote) String() string  { return l.peer.lame.name }
func (l *remote) Warning() string { return l.peer.lame.warning }

func (l *remote) Examine(ctx context.Context) ([]store.Finding, error) {
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
	return errors.Join(l.peer.lame.close(ctx, state), l.Ledger.Close(ctx))
}
