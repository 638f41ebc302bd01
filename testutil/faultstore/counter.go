package faultstore

import (
	"cmp"
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

	through

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

// NewCounter wraps a ledger. Closing the result closes inner.
func NewCounter(inner store.Ledger) *Counter {
	c := &Counter{Clock: clock.New(), counts: map[Op]int{}}
	c.through = plain(inner, c.count)
	return c
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

// count counts and logs an operation.
func (c *Counter) count(_ context.Context, o operation, effect func(Fault) error) error {
	began := c.Clock.Now()
	c.mu.Lock()
	c.counts[o.Op]++
	c.mu.Unlock()
	err := effect(Fault{})
	ended := c.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, Entry{o.Op, o.WorkerType, cmp.Or(o.size, o.Seq), began, ended, err})
	return err
}
