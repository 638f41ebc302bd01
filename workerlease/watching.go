package workerlease

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// watching is the watch of a client: it wakes the workers that wait for others when the ledger may
// have changed. It lasts from the first worker that can use that to the last.
type watching struct {
	mu     sync.Mutex
	types  map[string][]*WorkerLease // in the order in which they came: a map's would differ from run to run
	order  []string                  // of the types
	count  int
	cancel context.CancelFunc
	ended  chan struct{} // closed when no goroutine is left
}

// The waits between two watches that ended with an error.
const leastRewatch, mostRewatch = time.Second, time.Minute

// unwatchGrace is how long a worker that ends waits for the store to end the watch.
const unwatchGrace = time.Second

// watch lets a worker hear of hints, if it can use them and the store gives any.
func (c *Client) watch(w *WorkerLease) {
	ledger, ok := store.As[store.Watcher](c.ledger)
	if !ok || !w.machine.TakesRests() {
		return
	}
	x := &c.watching
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.types == nil {
		x.types = map[string][]*WorkerLease{}
	}
	workerType := w.options.WorkerType
	if x.types[workerType] == nil {
		x.order = append(x.order, workerType)
	}
	x.types[workerType] = append(x.types[workerType], w)
	if x.count++; x.count > 1 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	x.cancel, x.ended = cancel, ended
	go func() {
		defer close(ended)
		c.watchOn(ctx, ledger)
	}()
}

// watchOn watches until ctx ends, or until that is of no use. The first failure is told.
func (c *Client) watchOn(ctx context.Context, ledger store.Watcher) {
	told := false
	for wait := leastRewatch; ; wait = min(2*wait, mostRewatch) {
		began := c.local()
		err := ledger.Watch(ctx, c.hint)
		if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return
		}
		if !told {
			c.tellUnwatched(err)
			told = true
		}
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		if c.local()-began > mostRewatch {
			wait = leastRewatch
		}
		again := make(chan struct{})
		stop := c.after(wait, func() { close(again) })
		select {
		case <-again:
		case <-ctx.Done():
			stop()
			return
		}
	}
}

// tellUnwatched lets one worker report that the store gives no hints.
func (c *Client) tellUnwatched(err error) {
	x := &c.watching
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.order) > 0 {
		w := x.types[x.order[0]][0]
		w.post(arrival{observed: []event.Event{event.WatchFailed{Worker: w.label(), Err: err}}})
	}
}

// hint wakes the workers of a type, or of all types if it is empty, to which it may matter that the ledger
// may have changed. It never waits.
func (c *Client) hint(workerType string) {
	x := &c.watching
	x.mu.Lock()
	defer x.mu.Unlock()
	types := x.order
	if workerType != "" {
		types = []string{workerType}
	}
	for _, t := range types {
		for _, w := range x.types[t] {
			if w.heeds.CompareAndSwap(true, false) { // until it has taken in this one
				w.post(arrival{event: machine.Hinted{}})
			}
		}
	}
}

// unwatch forgets a worker that ends. With the last one it ends the watch.
func (c *Client) unwatch(w *WorkerLease) {
	x := &c.watching
	x.mu.Lock()
	workerType := w.options.WorkerType
	i := slices.Index(x.types[workerType], w)
	if i < 0 {
		x.mu.Unlock()
		return
	}
	x.types[workerType] = slices.Delete(x.types[workerType], i, i+1)
	if len(x.types[workerType]) == 0 {
		delete(x.types, workerType)
		at := slices.Index(x.order, workerType)
		x.order = slices.Delete(x.order, at, at+1)
	}
	if x.count--; x.count > 0 {
		x.mu.Unlock()
		return
	}
	x.cancel()
	ended := x.ended
	x.mu.Unlock()
	select {
	case <-ended:
		return
	default:
	}
	late := make(chan struct{})
	stop := c.after(unwatchGrace, func() { close(late) })
	defer stop()
	select {
	case <-ended:
	case <-late: // A store that doesn't end a watch keeps no worker from ending.
	}
}
