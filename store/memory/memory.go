package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// Options of New. The zero value is ready for use.
type Options struct {
	// Clock gives the store's time. Default: the real clock, or the bubble's inside a
	// testing/synctest bubble.
	Clock clock.Clock
}

// Ledger is a handle on a ledger in memory. The records live as long as any handle
// on them.
type Ledger struct {
	*data
	closed bool // Guarded by data.mu.
}

// data is what handles share.
type data struct {
	clock clock.Clock

	mu      sync.Mutex
	types   map[string]*column
	roster  map[place]store.Presence
	watches []*watch

	// telling is held while changed functions are called, so that none is after its Watch has
	// returned. It is never waited for under mu: only readers take it there.
	telling sync.RWMutex
}

// column holds the records of one worker type. Seqs are kept sorted.
type column struct {
	seqs    []int64
	records map[int64]store.Record
}

// followed is the range of indexes whose Seq can be followed.
func (c *column) followed() (from, to int) {
	from, _ = slices.BinarySearch(c.seqs, 1)
	to, _ = slices.BinarySearch(c.seqs, store.MaxSeq+1)
	return from, to
}

var (
	_ store.Ledger   = (*Ledger)(nil)
	_ store.Pager    = (*Ledger)(nil)
	_ store.Watcher  = (*Ledger)(nil)
	_ store.Follower = (*Ledger)(nil)
)

// New returns an empty ledger.
func New(o Options) *Ledger {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	return &Ledger{data: &data{clock: o.Clock, types: map[string]*column{}, roster: map[place]store.Presence{}}}
}

// Handle returns another handle on the same records, like that of another process:
// closing one leaves the others open. It works on a closed ledger, too.
func (l *Ledger) Handle() *Ledger { return &Ledger{data: l.data} }

// enter takes the lock if the ledger can serve the call.
func (l *Ledger) enter(ctx context.Context, op, key string) error {
	if err := fault.Ended(ctx); err != nil {
		return fmt.Errorf("memory: %s %.100q: %w", op, key, err)
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return fmt.Errorf("memory: %s %.100q: %w", op, key, store.ErrClosed)
	}
	return nil
}

// Init has nothing to create.
func (l *Ledger) Init(ctx context.Context) error {
	if err := l.enter(ctx, "init", ""); err != nil {
		return err
	}
	defer l.mu.Unlock()
	return nil
}

// Append inserts r unless its key exists.
func (l *Ledger) Append(ctx context.Context, r store.Record) error { return l.append(ctx, r, nil) }

// AppendAfter inserts r right above prev.
func (l *Ledger) AppendAfter(ctx context.Context, r, prev store.Record) error {
	if err := store.CheckAfter(r, prev); err != nil {
		return fmt.Errorf("memory: append: %w", err)
	}
	return l.append(ctx, r, &prev)
}

// append inserts r; right above prev, unless that is nil.
func (l *Ledger) append(ctx context.Context, r store.Record, prev *store.Record) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("memory: append: %w", err)
	}
	key := store.Key(r.WorkerType, r.Seq)
	if err := l.enter(ctx, "append", key); err != nil {
		return err
	}
	err := l.insert(r, prev, key)
	if err != nil || !store.Frees(r.Kind) || len(l.watches) == 0 {
		l.mu.Unlock()
		return err
	}
	watches := slices.Clone(l.watches)
	l.telling.RLock()
	l.mu.Unlock()
	defer l.telling.RUnlock()
	for _, w := range watches {
		w.changed(r.WorkerType)
	}
	return nil
}

// insert puts a record under its key, unless that is taken, or prev, if it isn't nil, isn't below. The caller holds mu.
func (l *Ledger) insert(r store.Record, prev *store.Record, key string) error {
	c := l.types[r.WorkerType]
	if c == nil {
		c = &column{records: map[int64]store.Record{}}
		l.types[r.WorkerType] = c
	}
	i, found := slices.BinarySearch(c.seqs, r.Seq)
	if found {
		return fmt.Errorf("memory: append %s: %w", key, store.ErrConflict)
	}
	if prev != nil {
		// What isn't there has no claim.
		if below := c.records[prev.Seq]; below.Defect != "" || !store.SameRecord(below, *prev) {
			return fmt.Errorf("memory: append %s: %w", key, store.WentBack(*prev))
		}
	}
	c.seqs = slices.Insert(c.seqs, i, r.Seq)
	c.records[r.Seq] = r.Truncated()
	return nil
}

// Put stores r as it is, valid or not: tests use it to plant what no worker of
// this version would write. It replaces a record that has the key.
func (l *Ledger) Put(r store.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.types[r.WorkerType]
	if c == nil {
		c = &column{records: map[int64]store.Record{}}
		l.types[r.WorkerType] = c
	}
	if i, found := slices.BinarySearch(c.seqs, r.Seq); !found {
		c.seqs = slices.Insert(c.seqs, i, r.Seq)
	}
	c.records[r.Seq] = r
}

// Lose deletes the newest n records of a worker type, or all if there are fewer, as a store does that is restored from an older copy or
// fails over to one: for tests of what is built on a ledger. It returns the number deleted.
func (l *Ledger) Lose(workerType string, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.types[workerType]
	if c == nil || n <= 0 {
		return 0
	}
	kept := max(0, len(c.seqs)-n)
	for _, seq := range c.seqs[kept:] {
		delete(c.records, seq)
	}
	n = len(c.seqs) - kept
	c.seqs = c.seqs[:kept]
	return n
}

// Get returns the record at a key.
func (l *Ledger) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	key := store.Key(workerType, seq)
	if err := l.enter(ctx, "get", key); err != nil {
		return store.Record{}, err
	}
	defer l.mu.Unlock()
	if c := l.types[workerType]; c != nil {
		if r, ok := c.records[seq]; ok {
			return r, nil
		}
	}
	return store.Record{}, fmt.Errorf("memory: get %.100q: %w", key, store.ErrNotFound)
}

// Tail returns the newest records, newest first, with a stamp for free.
func (l *Ledger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if err := l.enter(ctx, "tail", workerType); err != nil {
		return nil, store.Stamp{}, err
	}
	defer l.mu.Unlock()
	c := l.types[workerType]
	if c == nil {
		return nil, l.stamp(), nil
	}
	var out []store.Record
	below, above := c.followed()
	if unreachable := slices.Concat(c.seqs[above:], c.seqs[:below]); len(unreachable) > 0 {
		out = append(out, store.Record{WorkerType: workerType, Defect: fmt.Sprintf("seq %d can't be followed", unreachable[0])})
	}
	newest := c.seqs[max(below, above-max(limit, 0)):above]
	for _, seq := range slices.Backward(newest) {
		out = append(out, c.records[seq])
	}
	return out, l.stamp(), nil
}

// Page returns the oldest records above a Seq, oldest first.
func (l *Ledger) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	if err := l.enter(ctx, "page", workerType); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	c := l.types[workerType]
	if c == nil {
		return nil, nil
	}
	var out []store.Record
	below, above := c.followed()
	from, there := slices.BinarySearch(c.seqs, after)
	if there {
		from++
	}
	from = min(max(from, below), above)
	for _, seq := range c.seqs[from:min(from+max(0, min(limit, store.MaxPage)), above)] {
		out = append(out, c.records[seq])
	}
	return out, nil
}

// Trim deletes the oldest records below a Seq, but never the head.
func (l *Ledger) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	if err := l.enter(ctx, "trim", workerType); err != nil {
		return 0, err
	}
	defer l.mu.Unlock()
	c := l.types[workerType]
	if c == nil {
		return 0, nil
	}
	// The head is the newest key that can be followed, not an unreachable one above it.
	below, above := c.followed()
	if below == above {
		return 0, nil
	}
	before = min(before, c.seqs[above-1])
	n := 0
	for n < store.TrimBatch && c.seqs[0] < before {
		delete(c.records, c.seqs[0])
		c.seqs = c.seqs[1:]
		n++
	}
	return n, nil
}

// WorkerTypes lists the worker types that have records.
func (l *Ledger) WorkerTypes(ctx context.Context) ([]string, error) {
	if err := l.enter(ctx, "list", ""); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.types)), nil
}

// Now reads the injected clock.
func (l *Ledger) Now(ctx context.Context) (store.Stamp, error) {
	if err := l.enter(ctx, "now", ""); err != nil {
		return store.Stamp{}, err
	}
	defer l.mu.Unlock()
	return l.stamp(), nil
}

func (l *Ledger) stamp() store.Stamp {
	return store.Stamp{
		Time:        l.clock.Now().UTC().Round(0).Truncate(time.Microsecond),
		Granularity: time.Microsecond,
		Server:      "memory",
	}
}

// Close makes every later operation fail with store.ErrClosed.
func (l *Ledger) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watches {
		if w.of == l && !l.closed {
			close(w.closed)
		}
	}
	l.closed = true
	return nil
}
