package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// simulation says what a run is made of. Everything else follows from the seed.
type simulation struct {
	seed     int64
	workers  int
	length   time.Duration
	interval time.Duration
	drift    float64 // clocks run at 1 ± drift
	rates    faultstore.Rates
	stall    time.Duration // about how long between two stalls of a process; 0: never
	crash    time.Duration // about how long a process lives until it crashes or is stopped; 0: for ever
	cut      time.Duration // about how long between two partitions of a worker; 0: never
	groups   bool          // half of the workers share their leases
	mixed    bool          // the intervals of the workers differ
}

// options are a worker's.
func (s simulation) options(worker int64) workerlease.Options {
	o := workerlease.Options{
		WorkerType: "sim", InstanceID: fmt.Sprint("w", worker), Priority: int(worker) / 2,
		LeaseInterval: s.interval, JoinMidSlot: worker%4 == 1,
	}
	if s.groups && worker < 4 {
		o.Group = fmt.Sprint("g", worker%2)
	}
	if s.mixed {
		o.LeaseInterval = s.interval * []time.Duration{1, 2, 7}[worker%3]
	}
	return o
}

// term is one lease as the world saw it: by true time.
type term struct {
	worker, life int
	group        string
	token        int64
	start, end   time.Duration // the window
	began        time.Duration
	worked       time.Duration // the last work that was done
	ended        time.Duration // when the context was seen to end
	why          workerlease.Reason
	expired      int
	crashed      bool
}

// world runs the real engine in simulated processes, and alone knows true time.
// It must be run inside a synctest bubble.
type world struct {
	simulation
	origin time.Time
	ledger *memory.Ledger

	mu      sync.Mutex
	terms   []*term
	struck  map[string]int
	history *faultstore.History
	missed  int
	lives   sync.WaitGroup
}

func newWorld(s simulation) *world {
	return &world{
		simulation: s, origin: time.Now(), ledger: memory.New(memory.Options{}),
		struck: map[string]int{}, history: faultstore.NewHistory(),
	}
}

func (w *world) now() time.Duration { return time.Since(w.origin) }

// run lets the time pass.
func (w *world) run() {
	for i := range w.workers {
		w.lives.Go(func() { w.live(int64(i)) })
	}
	w.lives.Wait()
	synctest.Wait()
	slices.SortFunc(w.terms, func(a, b *term) int { return int(a.began - b.began) })
}

// live is the life of one worker: process after process.
func (w *world) live(worker int64) {
	// Not all start at once.
	time.Sleep(time.Duration(draw(w.seed, "start", worker) * float64(w.interval)))
	for life := int64(0); w.now() < w.length; life++ {
		age := w.length
		if w.crash > 0 {
			age = drawTime(draw(w.seed, "age", worker, life), w.crash/20, 5*w.crash)
		}
		w.process(worker, life, min(age, w.length-w.now()))
		time.Sleep(drawTime(draw(w.seed, "down", worker, life), time.Millisecond, w.interval))
	}
}

// process runs one process until it crashes, or stops at the end.
func (w *world) process(worker, life int64, age time.Duration) {
	c := &simClock{
		Clock: clock.New(), origin: w.origin,
		rate:   1 + w.drift*(2*draw(w.seed, "rate", worker, life)-1),
		boot:   drawTime(draw(w.seed, "boot", worker, life), time.Second, 1000*time.Hour),
		wall:   time.Duration(float64(2*time.Hour) * (draw(w.seed, "wall", worker, life) - 0.5)),
		stalls: drawStalls(w.seed, worker, life, w.stall, w.length),
	}
	p := &process{world: w, worker: worker, life: life, clock: c}
	faults := faultstore.New(kept{w.ledger}, faultstore.Options{
		Clock: clock.New(), Caller: fmt.Sprint(worker, ".", life), History: w.history, Plan: p.plan,
	})
	p.inner = faults
	client := workerlease.NewClient(p, workerlease.ClientOptions{
		Clock: c, Observer: p, Rand: simRand{w.seed, worker, life, c},
	})
	l, err := client.StartLeasing(context.Background(), w.options(worker),
		workerlease.Callbacks{LeaseAllocated: p.allocated, LeaseExpired: p.expired})
	if err != nil {
		panic(err)
	}
	time.Sleep(age)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if w.now() < w.length && draw(w.seed, "how", worker, life) < 0.5 {
		// A crash: nothing that this process does counts any more, but what it sent
		// may still land. Otherwise it is stopped, and releases.
		p.crash()
		cancel()
	}
	_ = l.StopLeasing(ctx)
	<-l.Done()
	w.lives.Go(func() {
		time.Sleep(2 * time.Hour) // for what lands late
		_ = faults.Close(context.Background())
		w.mu.Lock()
		defer w.mu.Unlock()
		for kind, n := range faults.Struck() {
			w.struck[string(kind)] += n
		}
	})
}

// kept is a ledger that outlives who uses it.
type kept struct{ store.Ledger }

func (kept) Close(context.Context) error { return nil }

// process is one life of a worker. It stands between the engine and the faulty
// store: it knows partitions and stalls, and that it is dead.
type process struct {
	world        *world
	worker, life int64
	clock        *simClock
	inner        store.Ledger

	mu    sync.Mutex
	dead  bool
	terms map[int64]*term
}

var errDead = errors.New("process is dead")

func (p *process) crash() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	now := p.world.now()
	for _, t := range p.terms {
		if t.expired == 0 {
			t.crashed, t.ended = true, now
		}
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// plan adds partitions to the faults that are drawn for each call.
func (p *process) plan(c faultstore.Call) faultstore.Fault {
	w := p.world
	f := faultstore.Random(uint64(w.seed), w.rates)(c)
	if w.cut <= 0 {
		return f
	}
	// Partitions come at random in stretches of true time; in the second half of
	// one, requests arrive and replies don't.
	n := int64(w.now() / w.cut)
	from := time.Duration(n)*w.cut + time.Duration(draw(w.seed, "cut from", p.worker, n)*float64(w.cut)/2)
	long := drawTime(draw(w.seed, "cut length", p.worker, n), time.Second, w.cut/2)
	if into := w.now() - from; into >= 0 && into < long {
		effect := faultstore.Dropped
		if into > long/2 {
			effect = faultstore.Applied
		}
		return faultstore.Fault{Before: f.Before, Effect: effect, Block: true}
	}
	return f
}

// reply lets a reply arrive: not before the process runs again, and never at one
// that is dead.
func (p *process) reply() error {
	at := p.world.now()
	time.Sleep(p.clock.stalls.resume(at) - at)
	if p.isDead() {
		return errDead
	}
	return nil
}

func (p *process) Append(ctx context.Context, r store.Record) error {
	if p.isDead() {
		return errDead
	}
	err := p.inner.Append(ctx, r)
	return errors.Join(err, p.reply())
}

func (p *process) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if p.isDead() {
		return store.Record{}, errDead
	}
	r, err := p.inner.Get(ctx, workerType, seq)
	return r, errors.Join(err, p.reply())
}

func (p *process) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if p.isDead() {
		return nil, store.Stamp{}, errDead
	}
	r, s, err := p.inner.Tail(ctx, workerType, limit)
	return r, s, errors.Join(err, p.reply())
}

func (p *process) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	if p.isDead() {
		return 0, errDead
	}
	n, err := p.inner.Trim(ctx, workerType, before)
	return n, errors.Join(err, p.reply())
}

func (p *process) Now(ctx context.Context) (store.Stamp, error) {
	if p.isDead() {
		return store.Stamp{}, errDead
	}
	s, err := p.inner.Now(ctx)
	return s, errors.Join(err, p.reply())
}

func (p *process) Init(ctx context.Context) error { return p.inner.Init(ctx) }

func (p *process) WorkerTypes(ctx context.Context) ([]string, error) {
	return p.inner.WorkerTypes(ctx)
}

func (p *process) Close(context.Context) error { return nil }

// Observe counts.
func (p *process) Observe(e workerlease.Event) {
	if p.isDead() {
		return
	}
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	if _, ok := e.(workerlease.Missed); ok {
		p.world.missed++
	}
}

// allocated is the user's code: it works in small pieces, and asks before each
// whether it still may.
func (p *process) allocated(ctx context.Context, l workerlease.Lease) {
	w := p.world
	if p.isDead() {
		return
	}
	t := &term{
		worker: int(p.worker), life: int(p.life), group: l.Group, token: l.Token, began: w.now(), worked: w.now(),
		start: l.Start.Sub(w.origin), end: l.Expiry.Sub(w.origin),
	}
	p.mu.Lock()
	if p.terms == nil {
		p.terms = map[int64]*term{}
	}
	p.terms[l.Token] = t
	p.mu.Unlock()
	w.mu.Lock()
	w.terms = append(w.terms, t)
	w.mu.Unlock()
	for n := int64(0); ; n++ {
		pause := drawTime(draw(w.seed, "beat", p.worker, l.Token, n), 50*time.Millisecond, w.interval/8)
		timer := time.NewTimer(p.clock.wait(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			p.mu.Lock()
			if !p.dead {
				t.ended = w.now()
			}
			p.mu.Unlock()
			if errors.Is(context.Cause(ctx), workerlease.ErrStopped) {
				p.tidyUp(t)
			}
			return
		}
		p.mu.Lock()
		if !p.dead && l.Valid() {
			t.worked = w.now()
		}
		p.mu.Unlock()
	}
}

// tidyUp works on for a moment after leasing was stopped, inside the window:
// nothing may be released before it has returned.
func (p *process) tidyUp(t *term) {
	w := p.world
	left := t.end - w.now() - time.Second
	long := drawTime(draw(w.seed, "tidy up", p.worker, t.token), time.Millisecond, 20*time.Second)
	if left < long || w.stall > 0 {
		return
	}
	time.Sleep(long)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		t.worked = w.now()
	}
}

func (p *process) expired(l workerlease.Lease, why workerlease.Reason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.terms[l.Token]; t != nil && !p.dead {
		t.expired++
		t.why = why
	}
}
