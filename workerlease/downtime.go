package workerlease

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// forgotten is how long nothing must have failed for the next failure to be told again, though no operation has shown that
// the store works: a worker whose appends are denied may try one a night.
const forgotten = time.Hour

// downtime makes one story of a store that fails: it is told when it begins, and when it ends, and not at each try. Only
// the goroutine that runs the worker uses it. It decides about no lease.
type downtime struct {
	failing       bool
	first, latest time.Duration // local readings: when the first operation that failed was begun, and the newest failed
	kind          kind          // the highest that has failed: only its success ends it
	worked        kind          // the highest that has succeeded since
	told          []error       // what was told: what failures mean
	quiet         bool          // another worker of the client has told it
	failures      int
	missed        int   // Status.Missed when it began
	lapsed        int   // leases that ended for it
	head          int64 // the newest record that was read since the newest failure; 0: none was
}

// kind is what an operation needs of a store. A store that shows its time may yet deny reads, and one that is read appends.
type kind int

const (
	none kind = iota
	times
	reads
	appends
)

var kinds = map[machine.Op]kind{machine.Sampling: times, machine.ReadingHead: reads, machine.ReadingRecord: reads, machine.Appending: appends}

// meanings are what failures of a store mean, if not that it can't be reached.
var meanings = []error{store.ErrMissing, store.ErrRefused, store.ErrDenied, store.ErrInvalid, store.ErrThrottled, store.ErrClosed}

// meaning is one of them, or nil.
func meaning(err error) error {
	for _, m := range meanings {
		if errors.Is(err, m) {
			return m
		}
	}
	return nil
}

// fails takes in a failure of the store, and reports whether one like it was told since the store worked. A store that has lost
// records answers.
func (w *WorkerLease) fails(op machine.Op, err error) (again bool) {
	if errors.Is(err, store.ErrWentBack) {
		return false
	}
	now, k, m, d := w.client.local(), kinds[op], meaning(err), &w.downtime
	if k == none { // Upkeep fails apart: trimming takes a right that leasing doesn't.
		d = &w.upkeep
	}
	if d.failing && (now-d.latest > forgotten || k != none && k <= d.worked) {
		w.client.down.leave(d)
		*d = downtime{}
	}
	if !d.failing {
		*d = downtime{failing: true, first: now - w.took, missed: w.missedSlots()}
	}
	d.latest, d.kind, d.failures, d.head = now, max(d.kind, k), d.failures+1, 0
	if slices.Contains(d.told, m) {
		return true
	}
	first := w.client.down.enter(d, m)
	d.quiet = !first
	return !first
}

// works takes in how an operation ended, which may end the downtime.
func (w *WorkerLease) works(e machine.Event) {
	w.took = 0
	if took, _, _, ok := reply(e); ok {
		w.took = took
	}
	k, d := none, &w.downtime
	switch e := e.(type) {
	case machine.Sampled:
		k = times
	case machine.HeadRead:
		k = reads
		if len(e.Records) > 0 && d.grows(e.Records[0]) && e.Records[0].InstanceID != w.options.InstanceID {
			k = appends // The store takes those of others. This worker may not append again for days.
		}
	case machine.RecordRead:
		k = reads
	case machine.Appended:
		k = appends
	case machine.Trimmed, machine.Sighted:
		d = &w.upkeep
	default:
		return
	}
	err := failureOf(e)
	if err == nil {
		w.client.answers.Add(1)
	}
	if errors.Is(err, store.ErrClosed) {
		select {
		case w.orphaned <- err:
		default:
		}
	}
	if !d.failing || err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrWentBack) {
		return
	}
	w.client.down.leave(d)
	if k < d.kind {
		d.worked = max(d.worked, k)
		return
	}
	if d == &w.downtime {
		over := *d
		over.latest = min(w.client.local(), over.latest+w.nextTry())
		w.over = &over
	}
	*d = downtime{}
}

// grows takes in the newest record, and reports whether it is newer than one that was read after the newest failure too. If
// this worker alone is denied or refused, what others append says nothing of that.
func (d *downtime) grows(newest store.Record) bool {
	if d.head == 0 {
		d.head = newest.Seq
		return false
	}
	return newest.Seq > d.head && !slices.ContainsFunc(d.told, func(m error) bool { return m != nil })
}

// tellOver reports a downtime that is over, once the machine has taken in what ended it: only then it is known what was missed.
func (w *WorkerLease) tellOver() {
	d := w.over
	if d == nil {
		return
	}
	w.over = nil
	w.emit(event.StoreRecovered{
		Worker: w.label(), Took: d.latest - d.first, Failures: d.failures, Missed: w.missedSlots() - d.missed, Lapsed: d.lapsed, Quiet: d.quiet,
	})
}

// missedSlots is Status.Missed.
func (w *WorkerLease) missedSlots() (n int) {
	w.count(func(p *progress) { n = p.missed })
	return n
}

// down is what workers of a client have told of a store that has answered none of them since.
type down struct {
	mu   sync.Mutex
	told map[error]map[*downtime]bool
}

// enter notes that a downtime is to be told, and reports whether it is the first.
func (c *down) enter(d *downtime, m error) bool {
	d.told = append(d.told, m)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told == nil {
		c.told = map[error]map[*downtime]bool{}
	}
	if c.told[m] == nil {
		c.told[m] = map[*downtime]bool{}
	}
	c.told[m][d] = true
	return len(c.told[m]) == 1
}

// any reports that workers have told that the store fails.
func (c *down) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range c.told {
		if len(all) > 0 {
			return true
		}
	}
	return false
}

// leave notes that the store has answered a worker.
func (c *down) leave(d *downtime) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range d.told {
		delete(c.told[m], d)
	}
}
