package notify

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// queue tells one target, one thing after the other.
type queue struct {
	of Event
	to Target
	o  Options

	ctx    context.Context // ends when nothing is tried any more
	cancel context.CancelFunc
	ending chan struct{} // closed when nothing is tried again

	mu      sync.Mutex
	facts   []Facts
	dropped int
	telling chan struct{} // closed when the goroutine has ended; nil: there is none
	closed  bool
}

func newQueue(of Event, to Target, o Options) *queue {
	q := &queue{of: of, to: to, o: o, ending: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// became reports the fate of n notifications, and what went wrong.
func (q *queue) became(as Outcome, n int, err error) {
	if q.o.Count != nil {
		q.o.Count(q.of, as, n)
	}
	if err != nil {
		q.o.Failed(q.of, q.to.Shown(), err)
	}
}

// add queues facts, in place of the oldest if there are too many.
func (q *queue) add(f Facts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if len(q.facts) >= mostQueued {
		q.facts = q.facts[1:]
		q.dropped++
	}
	q.facts = append(q.facts, f)
	if q.telling == nil {
		q.telling = make(chan struct{})
		go q.run(q.telling)
	}
}

// run tells what is queued until that is nothing.
func (q *queue) run(ended chan<- struct{}) {
	defer close(ended)
	for {
		q.mu.Lock()
		dropped, left := q.dropped, len(q.facts) > 0 && q.ctx.Err() == nil
		q.dropped = 0
		var f Facts
		if left {
			f, q.facts = q.facts[0], q.facts[1:]
		} else {
			q.telling = nil
		}
		q.mu.Unlock()
		if dropped > 0 {
			q.became(Dropped, dropped, fmt.Errorf("%d older notifications dropped: %d waited already", dropped, mostQueued))
		}
		if !left {
			return
		}
		if err := q.tryAll(f); err != nil {
			q.became(Failed, 1, err)
		} else {
			q.became(Sent, 1, nil)
		}
	}
}

// tryAll tries to tell facts a few times.
func (q *queue) tryAll(f Facts) error {
	for tries := 1; ; tries++ {
		final, err := q.to.tell(q.ctx, f, q.o)
		if err == nil {
			return nil
		}
		if tries <= len(waits) && !final {
			select {
			case <-time.After(waits[tries-1]):
				continue
			case <-q.ending:
			}
		}
		if tries > 1 {
			err = fmt.Errorf("%w, after %d tries", err, tries)
		}
		return err
	}
}

// close takes nothing more, and waits until all is told, or it is too late.
func (q *queue) close(late context.Context) {
	q.mu.Lock()
	q.closed = true
	telling := q.telling
	q.mu.Unlock()
	close(q.ending)
	defer q.cancel()
	if telling == nil {
		return
	}
	select {
	case <-telling:
		return
	case <-late.Done():
	}
	q.cancel()
	<-telling // Each try ends with the context.
	q.mu.Lock()
	left := len(q.facts)
	q.mu.Unlock()
	if left > 0 {
		q.became(Dropped, left, fmt.Errorf("%d more were not sent within %v of the end", left, flushTime))
	}
}
