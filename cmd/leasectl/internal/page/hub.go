package page

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// lookEvery is how long it is from one look to the next.
	lookEvery = time.Second
	// soonest is how long it is from a hint of the store.
	soonest = 200 * time.Millisecond
	// slow is after how long viewers are told that the store doesn't answer.
	slow = 3 * time.Second
	// mostViewers bounds the streams, and mostOfOne those of one user of a proxy, or of one address.
	mostViewers = 200
	mostOfOne   = mostViewers / 2
	// mostNews is how much is kept for a viewer that is slow. Of more, it has the whole again.
	mostNews = 8
)

// subject is what viewers look at.
type subject struct {
	view       string // overview, type, machines or health
	workerType string // of view type
}

// staleJSON says since when what is shown is old, and why.
type staleJSON struct {
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error"`
}

// hub has a topic for each subject that somebody looks at.
type hub struct {
	ctx   context.Context // until its end
	look  func(ctx context.Context, of subject) (picture, error)
	watch func(ctx context.Context) // takes hints; it runs while there is a topic
	event func(name string, value any) []byte

	mu      sync.Mutex
	topics  map[subject]*topic
	all     int
	of      map[string]int // viewers, by who they are
	unwatch context.CancelFunc
	running sync.WaitGroup
}

// topic is what viewers of one subject look at together. The hub's lock guards it.
type topic struct {
	viewers int
	stop    context.CancelFunc
	hint    chan struct{}
	whole   func() []byte // all that there is to know, for who comes
	good    time.Time     // when a look was; zero before the first
	stale   []byte        // what viewers are told while looks fail; else empty
	news    [][]byte      // the newest, for who has seen the last ones
	n       int           // how many there were
	more    chan struct{} // closed when there are more
}

// join adds a viewer of a subject. Call leave in the end.
func (h *hub) join(of subject, who string) (t *topic, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil || h.all >= mostViewers || h.of[who] >= mostOfOne {
		return nil, nil, refuse(http.StatusTooManyRequests, "%d viewers are there, %d of them from here, and no more are let in", h.all, h.of[who])
	}
	if len(h.topics) == 0 {
		h.unwatch = h.begin(h.watch)
	}
	if t = h.topics[of]; t == nil {
		t = &topic{hint: make(chan struct{}, 1), more: make(chan struct{}), whole: func() []byte { return nil }}
		t.stop = h.begin(func(ctx context.Context) { h.run(ctx, of, t) })
		h.topics[of] = t
	}
	t.viewers++
	h.of[who]++
	h.all++
	return t, func() { h.leave(of, who) }, nil
}

// begin runs something until the function that is returned is called, or the hub ends.
func (h *hub) begin(run func(ctx context.Context)) context.CancelFunc {
	ctx, stop := context.WithCancel(h.ctx)
	h.running.Go(func() { run(ctx) })
	return stop
}

// leave removes a viewer. A topic without one ends.
func (h *hub) leave(of subject, who string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all--
	if h.of[who]--; h.of[who] == 0 {
		delete(h.of, who)
	}
	t := h.topics[of]
	if t.viewers--; t.viewers == 0 {
		t.stop()
		delete(h.topics, of)
	}
	if len(h.topics) == 0 {
		h.unwatch()
	}
}

// close ends all topics by end, which ends the hub's context, and waits for them. Viewers leave by themselves.
func (h *hub) close(end context.CancelFunc) {
	h.mu.Lock()
	end()
	h.mu.Unlock()
	h.running.Wait()
}

// hinted makes the topics that a change of a worker type may show in look at once; of all types, if it is empty.
func (h *hub) hinted(workerType string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for of, t := range h.topics {
		if of.view == "health" || of.workerType != "" && workerType != "" && of.workerType != workerType {
			continue
		}
		select {
		case t.hint <- struct{}{}:
		default:
		}
	}
}

// run looks until ctx ends.
func (h *hub) run(ctx context.Context, of subject, t *topic) {
	every, patience := lookEvery, slow
	if of.view == "health" { // An examination takes its time, and isn't made each time.
		every, patience = examineAgain, time.Hour
	}
	for last := (picture{}); ctx.Err() == nil; {
		late := time.AfterFunc(patience, func() {
			h.failed(ctx, t, "this look takes longer than "+slow.String()+": the store is slow or gone, or has very many worker types")
		})
		now, err := h.look(ctx, of)
		late.Stop()
		if err != nil {
			h.failed(ctx, t, oneLine(err))
		} else {
			h.publish(t, last, now)
			last = now
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		case <-t.hint:
			time.Sleep(soonest) // Others may come.
		}
	}
}

// publish passes on what a look has found. Who was told that the last one is stale has the whole.
func (h *hub) publish(t *topic, last, now picture) {
	news := now.since(last, h.event)
	h.mu.Lock()
	defer h.mu.Unlock()
	first := t.good.IsZero() || t.stale != nil
	t.whole, t.good, t.stale = sync.OnceValue(func() []byte { return now.whole(h.event) }), time.Now(), nil
	if first {
		t.news = nil
		t.tell()
	} else if len(news) > 0 {
		t.tell(news)
	}
}

// failed tells that what is shown is stale, once for each reason.
func (h *hub) failed(ctx context.Context, t *topic, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.event("stale", staleJSON{t.good.UTC().Truncate(time.Second), why})
	if ctx.Err() == nil && !bytes.Equal(e, t.stale) {
		t.stale = e
		t.tell(e)
	}
}

// tell wakes the viewers for what is new. Without news they have the whole.
func (t *topic) tell(news ...[]byte) {
	t.n++
	t.news = append(t.news, news...)
	t.news = t.news[max(0, len(t.news)-mostNews):]
	close(t.more)
	t.more = make(chan struct{})
}

// since is what to tell a viewer who has heard the first n news of a topic, how many there are, and what is closed when there
// are more.
func (h *hub) since(t *topic, n int) (told []byte, all int, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch missed := t.n - n; {
	case missed == 0:
	case n > 0 && missed <= len(t.news):
		told = bytes.Join(t.news[len(t.news)-missed:], nil)
	default:
		told = slices.Concat(t.whole(), t.stale)
	}
	return told, t.n, t.more
}
