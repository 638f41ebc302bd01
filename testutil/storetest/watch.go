package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// watchCases are for stores that give hints.
var watchCases = []testCase{
	{"a hint comes after what may free a lease, by another handle", func(t *testing.T, b *bench) {
		for _, kind := range []store.Kind{store.KindRelease, store.KindOverride} {
			w := watched(t, b.Ledger)
			w.begin(t, b)
			w.await(t, b.handle(t), freeing(kind, "watched-"+string(kind), 1))
			w.end(t, context.Canceled)
		}
	}},
	{"a hint comes after what this handle appends", func(t *testing.T, b *bench) {
		w := watched(t, b.Ledger)
		w.await(t, b, freeing(store.KindRelease, "job", w.begin(t, b)))
		w.end(t, context.Canceled)
	}},
	{"a watch ends when its handle is closed, and those of other handles go on", func(t *testing.T, b *bench) {
		other := b.handle(t)
		first, second := watched(t, b.Ledger), watched(t, other)
		first.begin(t, b)
		second.begin(t, b)
		if err := b.Close(within(t)); err != nil {
			t.Fatalf("Close() during Watch = %v, want nil", err)
		}
		first.ended(t, store.ErrClosed)
		second.await(t, other, freeing(store.KindRelease, "later", 1))
		second.end(t, context.Canceled)
		if err := watcher(t, b.Ledger).Watch(within(t), func(string) {}); !errors.Is(err, store.ErrClosed) {
			t.Errorf("Watch after Close = %v, want ErrClosed", err)
		}
	}},
	{"a watch whose context has ended returns at once, with its error", func(t *testing.T, b *bench) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := watcher(t, b.Ledger).Watch(ctx, func(string) {}); !errors.Is(err, context.Canceled) {
			t.Errorf("Watch with an ended context = %v, want its error", err)
		}
	}},
	{"nobody is told after Watch has returned", func(t *testing.T, b *bench) {
		w := watched(t, b.Ledger)
		next := w.begin(t, b)
		done := make(chan struct{})
		other := b.handle(t)
		ctx := within(t)
		go func() {
			defer close(done)
			for seq := next; seq < next+40; seq++ {
				if err := other.Append(ctx, freeing(store.KindRelease, "job", seq)); err != nil {
					t.Errorf("Append() = %v, want nil", err)
					return
				}
			}
		}()
		w.end(t, context.Canceled)
		<-done
		// These appends may all have ended before Watch did. What another watch is told now, the
		// first one would be told, too.
		second := watched(t, b.Ledger)
		second.begin(t, b)
		for seq := range int64(3) {
			second.await(t, other, freeing(store.KindRelease, "later", 1+seq))
		}
		second.end(t, context.Canceled)
	}},
}

// freeing is a record of a kind that may free a lease.
func freeing(kind store.Kind, workerType string, seq int64) store.Record {
	r := Grant(workerType, seq)
	r.Kind, r.WindowStart = kind, r.WindowEnd
	return r
}

// watch is one call of Watch, with what it was told.
type watch struct {
	cancel context.CancelFunc
	done   chan error

	mu       sync.Mutex
	told     map[string]int // by worker type
	news     chan struct{}  // closed, and replaced, at each hint
	returned bool
	late     bool // it was told after it had returned
}

// watcher skips the test if the store gives no hints.
func watcher(t *testing.T, l store.Ledger) store.Watcher {
	t.Helper()
	w, ok := store.As[store.Watcher](l)
	if !ok {
		t.Skip("the store gives no hints")
	}
	return w
}

// watched begins to watch.
func watched(t *testing.T, l store.Ledger) *watch {
	t.Helper()
	ledger := watcher(t, l)
	ctx, cancel := context.WithCancel(lasting(t, patience))
	w := &watch{cancel: cancel, done: make(chan error, 1), told: map[string]int{}, news: make(chan struct{})}
	go func() {
		err := ledger.Watch(ctx, w.changed)
		w.mu.Lock()
		w.returned = true
		w.mu.Unlock()
		w.done <- err
	}()
	t.Cleanup(func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.late {
			t.Error("a hint came after Watch had returned")
		}
	})
	return w
}

func (w *watch) changed(workerType string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = w.late || w.returned
	w.told[workerType]++
	close(w.news)
	w.news = make(chan struct{})
}

// begin appends until a hint shows that the watch is under way, and returns the next free Seq of
// the type "job".
func (w *watch) begin(t *testing.T, b *bench) (next int64) {
	t.Helper()
	other := b.handle(t)
	head, _, err := other.Tail(within(t), "job", 1)
	if err != nil {
		t.Fatalf("Tail() = %v, want nil", err)
	}
	next = 1
	if len(head) > 0 {
		next = head[0].Seq + 1
	}
	for end := wall.Now().Add(patience); ; next++ {
		w.mu.Lock()
		news, told := w.news, len(w.told)
		w.mu.Unlock()
		if told > 0 {
			return next
		}
		add(t, other, freeing(store.KindRelease, "job", next))
		timer := wall.Timer(50 * time.Millisecond)
		select {
		case <-news:
		case <-timer.C:
		case err := <-w.done:
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skipf("the store gives no hints here: %v", err)
			}
			t.Fatalf("Watch() = %v, want it to go on", err)
		}
		timer.Stop()
		if wall.Now().After(end) {
			t.Fatalf("no hint came for %d appends", next)
		}
	}
}

// hints counts those that may be of a type.
func (w *watch) hints(workerType string) (n int, news <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told[workerType] + w.told[""], w.news
}

// await appends a record, and waits for a hint that may be of its type.
func (w *watch) await(t *testing.T, l store.Ledger, r store.Record) {
	t.Helper()
	w.awaitAfter(t, r.WorkerType, func() { add(t, l, r) })
}

// awaitAfter waits for a hint that comes after an append.
func (w *watch) awaitAfter(t *testing.T, workerType string, append func()) {
	t.Helper()
	before, _ := w.hints(workerType)
	append()
	ctx := within(t)
	for {
		n, news := w.hints(workerType)
		if n > before {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			t.Fatalf("no hint came for %s", workerType)
		}
	}
}

// end ends the watch.
func (w *watch) end(t *testing.T, want error) {
	t.Helper()
	w.cancel()
	w.ended(t, want)
}

// ended waits for the end of the watch.
func (w *watch) ended(t *testing.T, want error) {
	t.Helper()
	select {
	case err := <-w.done:
		if !errors.Is(err, want) {
			t.Errorf("Watch() = %v, want %v", err, want)
		}
	case <-within(t).Done():
		t.Fatal("Watch did not return")
	}
}
