package sqlite

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/internal/filelock"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// maxGroup is how many appends one transaction stores at most, so that readers of the handle and other
// processes don't wait long for it.
const maxGroup = 500

// entry is an append that waits for its outcome.
type entry struct {
	ctx    context.Context
	values []any
	frees  bool          // others may be waiting for this record
	done   chan error    // has room for the outcome
	waited time.Duration // for locks; of the goroutine that commits
	alone  bool          // needs a transaction of its own
	locked atomic.Bool   // by another process, when it was tried last
}

// queue has the appends of a handle that are in no transaction yet. One goroutine commits what has
// gathered while it was at the last commit. It ends when nothing has, so a lone append waits for none.
type queue struct {
	mu        sync.Mutex
	waiting   []*entry
	committed bool          // A goroutine commits.
	left      chan struct{} // has room for the news that an entry was taken back
}

// add reports whether the caller must start a goroutine that commits.
func (q *queue) add(e *entry) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, e)
	first = !q.committed
	q.committed = true
	return first
}

// remove takes an entry back, if it isn't part of a group.
func (q *queue) remove(e *entry) bool {
	q.mu.Lock()
	i := slices.Index(q.waiting, e)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.mu.Unlock()
	select {
	case q.left <- struct{}{}:
	default: // There is that news already.
	}
	return i >= 0
}

// next takes what waits, as much as one transaction stores. If nothing waits, no goroutine commits any more.
func (q *queue) next() []*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.waiting, q.committed = nil, false
		return nil
	}
	return q.fill(nil)
}

// more adds what waits to a group.
func (q *queue) more(group []*entry) []*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.fill(group)
}

// fill adds what waits to a group, as far as there is room. It needs the lock.
func (q *queue) fill(group []*entry) []*entry {
	for len(q.waiting) > 0 && len(group) < maxGroup {
		next := q.waiting[0]
		if len(group) > 0 && (next.alone || group[0].alone) {
			break
		}
		group = append(group, next)
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
	}
	return group
}

// putBack puts a group in front of what waits, and returns all.
func (q *queue) putBack(group []*entry) (all []*entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.Concat(group, q.waiting)
	return slices.Clone(q.waiting)
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0
}

// enqueue appends the values of a record of a kind, in one transaction with those that are appended meanwhile.
func (l *Ledger) enqueue(ctx context.Context, kind store.Kind, values []any) error {
	if ctx.Err() != nil {
		return fault.Ended(ctx)
	}
	if err := l.begin(); err != nil {
		return err
	}
	if l.o.ReadOnly {
		l.calls.Done()
		return errReadOnly
	}
	e := &entry{ctx: ctx, values: values, frees: store.Frees(kind), done: make(chan error, 1)}
	if l.appends.add(e) {
		l.run(func() { l.commitAll(context.WithoutCancel(ctx)) })
	}
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
		if l.appends.remove(e) {
			l.calls.Done()
		}
		return l.givenUp(ctx, e.locked.Load())
	}
}

// commitAll commits what waits until nothing does. The end of an entry's context takes that entry out, and
// interrupts nothing: others may be in the same transaction.
func (l *Ledger) commitAll(ctx context.Context) {
	pause := firstPause
	for {
		group := l.appends.next()
		if len(group) == 0 {
			return
		}
		group, why := l.commit(ctx, group)
		if why == nil {
			pause = firstPause
			l.appends.putBack(group)
			continue
		}
		l.appends.putBack(l.patient(group, why))
		l.rest(pause)
		pause = min(2*pause, lastPause)
	}
}

// patient are those of a group that found the file locked which wait for longer.
func (l *Ledger) patient(group []*entry, why error) (rest []*entry) {
	for _, e := range group {
		if e.locked.Store(isLocked(why)); e.locked.Load() {
			filelock.Found(e.ctx, e.waited)
		}
		if err := l.impatient(e.waited, why); err != nil {
			l.answer(err, e)
		} else {
			rest = append(rest, e)
		}
	}
	return rest
}

// rest waits before what found the file locked is repeated. It ends at once when nothing waits any
// more: Close may be waiting.
func (l *Ledger) rest(pause time.Duration) {
	present := l.appends.putBack(nil)
	timer := l.o.Clock.Timer(pause)
	defer timer.Stop()
	for !l.appends.empty() {
		select {
		case <-l.appends.left:
		case <-timer.C:
			for _, e := range present {
				e.waited += pause
			}
			return
		}
	}
}

// answer gives entries their outcome.
func (l *Ledger) answer(err error, entries ...*entry) {
	for _, e := range entries {
		explained := err
		if err != nil {
			explained = l.explain(e.ctx, err)
		}
		e.done <- explained
		l.calls.Done()
	}
}

// present are those of a group whose contexts have not ended. The others are stored neither now nor later.
func (l *Ledger) present(group []*entry) (rest []*entry) {
	rest = group[:0]
	for _, e := range group {
		if err := l.givenUp(e.ctx, e.locked.Load()); err != nil {
			l.answer(err, e)
		} else {
			rest = append(rest, e)
		}
	}
	return rest
}
