package inspect

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/around"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

const (
	// probe is how many records are read to find out what has been appended.
	probe = 8
	// again is after how long all that is kept is read anew: old records are deleted.
	again = 5 * time.Minute
	// mostKept is how many records are kept, of a few hundred bytes each. Of more, all are forgotten.
	mostKept = 200_000
	// eachName is how long a list of names, or of workers, is good for each that it has.
	eachName = 2 * time.Millisecond
)

// Cache is a ledger that keeps the newest records of each worker type that was read: records don't change, so that the next
// look reads only what has been appended. It is safe for concurrent use.
type Cache struct {
	around.Ledger

	fresh, each time.Duration

	mu      sync.Mutex
	tails   map[string]*tail
	kept    int // records
	names   list[string]
	rosters map[string]*list[store.Presence]
}

// NewCache keeps what is read of a ledger. An answer is good for fresh, and for each per worker type where that is longer: but
// when one of a worker type's moments has come, such as the beginning of a slot, it is read at once. With 0 and 0, each look
// finds what there is.
func NewCache(l store.Ledger, fresh, each time.Duration) *Cache {
	plain := func(ctx context.Context, _ string) (context.Context, func()) { return ctx, func() {} }
	return &Cache{
		Ledger: around.Ledger{Ledger: l, Do: plain}, fresh: fresh, each: each,
		tails: map[string]*tail{}, rosters: map[string]*list[store.Presence]{},
	}
}

// Types is of how many worker types records are kept.
func (c *Cache) Types() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tails)
}

// Refresh lets the next look read a worker type anew, unless that was done within the age; or all, if it is empty. Of many, the
// next looks find out.
func (c *Cache) Refresh(workerType string, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	many := c.each*time.Duration(len(c.tails)) > c.fresh
	for name, t := range c.tails {
		if at := time.Now().Add(-age); at.After(t.anew) && (name == workerType || workerType == "" && !many) {
			t.anew = at
		}
	}
}

// Watch takes the hints of the ledger, if it gives any: a worker type that has changed is read anew.
func (c *Cache) Watch(ctx context.Context, changed func(workerType string)) error {
	watcher, able := store.As[store.Watcher](c.Unwrap())
	if !able {
		return errors.ErrUnsupported
	}
	return watcher.Watch(ctx, func(workerType string) {
		c.Refresh(workerType, 0)
		changed(workerType)
	})
}

// Tail returns the newest records of a worker type.
func (c *Cache) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	t, anew := c.tail(workerType)
	t.mu.Lock()
	defer t.mu.Unlock()
	if begun := time.Now(); !t.has(limit) || !t.read.After(anew) || !begun.Before(t.until) {
		before := len(t.records)
		if err := t.take(ctx, c.Ledger, workerType, limit); err != nil {
			return nil, store.Stamp{}, err
		}
		t.read = begun
		c.keep(workerType, t, len(t.records)-before)
		t.until = time.Now().Add(t.calm(c.fresh, c.each*time.Duration(c.Types())))
	}
	return slices.Clone(t.records[:min(limit+t.beside(), len(t.records))]), t.stamp, nil
}

// WorkerTypes lists the worker types.
func (c *Cache) WorkerTypes(ctx context.Context) ([]string, error) {
	return c.names.get(c.fresh, func() ([]string, error) { return c.Ledger.WorkerTypes(ctx) })
}

// Presences lists the presences of a worker type, or of all.
func (c *Cache) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	c.mu.Lock()
	l := c.rosters[workerType]
	if l == nil {
		l = &list[store.Presence]{}
	}
	c.mu.Unlock()
	all, err := l.get(c.fresh, func() ([]store.Presence, error) { return c.Ledger.Presences(ctx, workerType) })
	if len(all) > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.rosters[workerType] = l
	}
	return all, err
}

// tail is that of a worker type, which isn't kept yet if it is new, and up to when it must not have been read.
func (c *Cache) tail(workerType string) (t *tail, anew time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t = c.tails[workerType]; t == nil {
		t = &tail{}
	}
	return t, t.anew
}

// keep stores a tail that has grown. An empty one isn't stored, or requests for names that don't exist would fill the cache.
func (c *Cache) keep(workerType string, t *tail, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept += more; c.kept > mostKept {
		clear(c.tails)
		clear(c.rosters)
		c.kept = len(t.records)
	}
	if len(t.records) > 0 {
		c.tails[workerType] = t
	}
}

// list is an answer that is good for a while.
type list[T any] struct {
	mu    sync.Mutex
	all   []T
	until time.Time
}

// get asks, if what is known is too old.
func (l *list[T]) get(fresh time.Duration, ask func() ([]T, error)) (_ []T, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !time.Now().Before(l.until) {
		if l.all, err = ask(); err != nil {
			return nil, err
		}
		if fresh > 0 {
			l.until = time.Now().Add(max(fresh, eachName*time.Duration(len(l.all))))
		}
	}
	return slices.Clone(l.all), nil
}

// tail are the newest records of a worker type.
type tail struct {
	anew time.Time // what was read up to then is old; under the cache's lock

	mu      sync.Mutex
	records []store.Record // newest first
	whole   bool           // there are no others
	stamp   store.Stamp    // of the newest read
	all     time.Time      // when all were read
	read    time.Time      // when any were, at the beginning
	until   time.Time      // up to when they needn't be
}

// beside is how many records come in addition to a limit: one that can't be reached, if there is one.
func (t *tail) beside() int {
	if len(t.records) > 0 && t.records[0].Seq == 0 {
		return 1
	}
	return 0
}

// has reports that so many of the newest records are known, or all that there are.
func (t *tail) has(limit int) bool { return t.whole || len(t.records)-t.beside() >= limit }

// take takes in what has been appended, or all up to a limit.
func (t *tail) take(ctx context.Context, l store.Ledger, workerType string, limit int) error {
	known := t.has(limit) && gapless(t.records) && time.Since(t.all) < again
	if limit = max(limit, len(t.records)-t.beside()); known {
		newest, stamp, err := l.Tail(ctx, workerType, probe)
		if err != nil {
			return err
		}
		if n, ok := t.follows(newest); ok {
			t.records = slices.Concat(newest[:n], t.records)
			t.whole = t.whole && len(t.records) <= limit
			t.records, t.stamp = t.records[:min(limit, len(t.records))], stamp
			return nil
		}
	}
	records, stamp, err := l.Tail(ctx, workerType, limit)
	if err == nil {
		t.records, t.stamp, t.all = records, stamp, time.Now()
		t.whole = len(records)-t.beside() < limit
	}
	return err
}

// follows is how many of the newest records come right after those that are kept, which are gapless. It isn't ok if that can't
// be told: there are more, the ledger is another one, some can't be reached, or a key is free.
func (t *tail) follows(newest []store.Record) (n int, ok bool) {
	have := t.records[0]
	for i, r := range newest {
		switch {
		case r.Seq < 1:
			return 0, false
		case r.Seq == have.Seq:
			same := r.Token == have.Token && r.Claim == have.Claim && r.Kind == have.Kind && r.FixedAt.Equal(have.FixedAt)
			return i, same && gapless(newest[:i+1])
		}
	}
	return 0, false
}

// gapless reports that there are records, all can be reached, and no key is free between them: at one, workers go on.
func gapless(newest []store.Record) bool {
	n := len(newest)
	return n > 0 && newest[0].Seq > 0 && newest[0].Seq-newest[n-1].Seq == int64(n-1)
}

// calm is for how long a worker type needn't be read: fresh, or longer, up to its next moment.
func (t *tail) calm(fresh, most time.Duration) time.Duration {
	if most <= fresh || t.stamp.IsZero() {
		return max(fresh, most)
	}
	now := t.stamp.Time
	soon := func(at time.Time) {
		if d := at.Sub(now); d > 0 {
			most = min(most, max(d, fresh))
		}
	}
	const enough = 4 // records: the claims and what came of them
	for _, r := range t.records[:min(enough, len(t.records))] {
		soon(r.WindowStart)
		soon(r.WindowEnd)
		soon(r.SlotEnd)
	}
	if len(t.records) > 0 {
		if s, err := slots.Parse(t.records[0].Schedule); err == nil {
			soon(s.Next(now).Start)
		}
	}
	return most
}
