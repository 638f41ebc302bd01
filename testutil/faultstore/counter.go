package faultstore

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

// Counter is a store.Ledger that counts and logs operations, and changes nothing.
// Wrapped around a Ledger it sees the caller's operations; inside one, those that
// reached the store. It is safe for concurrent use.
type Counter struct {
	// Clock gives the times in the log. Set it before the first call. NewCounter sets
	// the real clock; in a testing/synctest bubble that is the bubble's.
	Clock clock.Clock

	inner store.Ledger

	mu     sync.Mutex
	counts map[Op]int
	log    []Entry
}

// Entry is one operation in the log of a Counter.
type Entry struct {
	Op         Op
	WorkerType string
	// Seq is the Seq of an append or a get, the argument before of a trim and after of a page,
	// the limit of a tail, and the number of presences of an attend or a leave.
	Seq int64
	// Began and Ended are times of the Counter's clock.
	Began, Ended time.Time
	Err          error
}

var _ store.Ledger = (*Counter)(nil)

// NewCounter wraps a ledger. Closing the result closes inner.
func NewCounter(inner store.Ledger) *Counter {
	return &Counter{Clock: clock.New(), inner: inner, counts: map[Op]int{}}
}

// Counts returns how often each operation began, failed ones included.
func (c *Counter) Counts() map[Op]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// Log returns the operations that have ended, in the order in which they ended.
func (c *Counter) Log() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// Reset clears the counts and the log.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.counts)
	c.log = nil
}

// begin counts an operation; the result logs its end and its error.
func (c *Counter) begin(op Op, workerType string, seq int64) func(*error) {
	began := c.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[op]++
	return func(err *error) {
		ended := c.Clock.Now()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.log = append(c.log, Entry{op, workerType, seq, began, ended, *err})
	}
}

// Init passes on to the inner ledger.
func (c *Counter) Init(ctx context.Context) (err error) {
	defer c.begin(OpInit, "", 0)(&err)
	return c.inner.Init(ctx)
}

// Append passes on to the inner ledger.
func (c *Counter) Append(ctx context.Context, r store.Record) (err error) {
	defer c.begin(OpAppend, r.WorkerType, r.Seq)(&err)
	return c.inner.Append(ctx, r)
}

// Get passes on to the inner ledger.
func (c *Counter) Get(ctx context.Context, workerType string, seq int64) (r store.Record, err error) {
	defer c.begin(OpGet, workerType, seq)(&err)
	return c.inner.Get(ctx, workerType, seq)
}

// Tail passes on to the inner ledger.
func (c *Counter) Tail(ctx context.Context, workerType string, limit int) (records []store.Record, s store.Stamp, err error) {
	defer c.begin(OpTail, workerType, int64(limit))(&err)
	return c.inner.Tail(ctx, workerType, limit)
}

// Trim passes on to the inner ledger.
func (c *Counter) Trim(ctx context.Context, workerType string, before int64) (n int, err error) {
	defer c.begin(OpTrim, workerType, before)(&err)
	return c.inner.Trim(ctx, workerType, before)
}

// WorkerTypes passes on to the inner ledger.
func (c *Counter) WorkerTypes(ctx context.Context) (types []string, err error) {
	defer c.begin(OpWorkerTypes, "", 0)(&err)
	return c.inner.WorkerTypes(ctx)
}

// Now passes on to the inner ledger.
func (c *Counter) Now(ctx context.Context) (s store.Stamp, err error) {
	defer c.begin(OpNow, "", 0)(&err)
	return c.inner.Now(ctx)
}

// Close closes the inner ledger. It is neither counted nor logged.
func (c *Counter) Close(ctx context.Context) error { return c.inner.Close(ctx) }
