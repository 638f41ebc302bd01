package sim

import (
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/slots"
)

// world runs the engine in simulated processes, and alone knows true time. It lives inside a
// synctest bubble.
type world struct {
	o      Options
	origin time.Time
	beyond bool // a fault beyond the assumptions is set
	hosts  []*host
	server *server
	tally  tally
	lives  sync.WaitGroup

	mu         sync.Mutex // guards what follows; taken before any lock of the engine
	ledgers    map[string]*ledger
	roster     roster
	planted    map[string]bool // claims of records that no worker wrote
	resources  map[string]*resource
	leases     []*Lease
	overlaps   []*Overlap
	missed     int
	inversions int
	demands    Demands
	works      int
	plantings  []Planted
	judged     int // how many plantings need no more checks

	books  sync.Mutex // guards what follows
	booked map[time.Duration]bool

	notes      sync.Mutex // guards what follows; taken last
	violations []string
	more       int   // that are not kept
	failed     error // why the simulation can't go on
	lines      []line
	alarms     []alarm
}

func newWorld(o Options) *world {
	f := o.Faults
	w := &world{
		o: o, origin: time.Now(), beyond: f.beyond(), server: newServer(o), tally: newTally(),
		ledgers: map[string]*ledger{}, planted: map[string]bool{}, resources: map[string]*resource{},
		booked: map[time.Duration]bool{},
	}
	for i := range o.Workers {
		w.hosts = append(w.hosts, w.newHost(int64(i)))
	}
	return w
}

// now is true time, from the beginning of the run.
func (w *world) now() time.Duration { return time.Since(w.origin) }

// time is a store time as a true time.
func (w *world) time(t time.Time) time.Duration { return t.Sub(w.origin) }

// later calls f on its own goroutine, at an instant of a process's lane that nothing else is
// booked for.
func (w *world) later(p *Process, l lane, d time.Duration, f func()) {
	at := w.now()
	due := p.slot(at+d, l)
	w.books.Lock()
	defer w.books.Unlock()
	for w.booked[due] {
		due += round
	}
	w.booked[due] = true
	time.AfterFunc(due-at, func() {
		w.books.Lock()
		delete(w.booked, due)
		w.books.Unlock()
		f()
	})
}

// run lets the time pass.
func (w *world) run() {
	for _, h := range w.hosts {
		w.lives.Go(func() { w.live(h) })
	}
	if w.plants() {
		w.lives.Go(w.plant)
	}
	if w.o.Faults.Losses > 0 {
		w.lives.Go(w.lose)
	}
	if w.o.Orders > 0 {
		w.lives.Go(w.operate)
	}
	if w.o.Triggers > 0 {
		w.lives.Go(w.trigger)
	}
	type sameSlots struct {
		workerType string
		schedule   slots.Schedule
	}
	guarded := map[sameSlots]bool{}
	for _, h := range w.hosts {
		n, same := len(guarded), sameSlots{h.options.WorkerType, h.schedule}
		if h.plain && !guarded[same] && n < mostGuards {
			guarded[same] = true
			w.lives.Go(func() { w.guard(h, n) })
		}
	}
	w.await()
	time.Sleep(lingers)
	for _, s := range []outages{w.server.elections, w.server.steps, w.server.jumps, w.server.votes} {
		w.tally.passed(s, 0, w.o.Length)
	}
	synctest.Wait()
}

// lingers is more than a call takes whose caller doesn't wait for it, on a host that is
// paused.
const lingers = 20 * time.Minute

// patience is how long after the end of the run the code under test may still run, in
// simulated time, which is cheap.
const patience = 60 * 24 * time.Hour

// await waits until everything has ended, and names the code that never ends.
func (w *world) await() {
	done := make(chan struct{})
	go func() {
		w.lives.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(w.o.Length + patience):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.leases {
		if !l.over() && (l.Expiries > 0 || l.Crashed) {
			// A bubble can't be left behind with goroutines in it: end it all.
			panic(fmt.Sprintf("sim: seed %d: the code under %v has not returned, %v after its context ended: find it among the goroutines below", w.o.Seed, l, w.now()-l.Ended))
		}
	}
	panic(fmt.Sprintf("sim: seed %d: something has not ended, %v after the run", w.o.Seed, patience))
}

// live is the life of one worker: process after process.
func (w *world) live(h *host) {
	r := newRand(w.o.Seed, forLife, h.worker, 0)
	// The processes don't all start at once.
	time.Sleep(r.upTo(time.Minute) + time.Duration(h.worker*lanes) + 1)
	for life := 0; w.now() < w.o.Length && !w.stopped(); life++ {
		age := w.o.Length
		if f := w.o.Faults; f.Restarts > 0 {
			age = r.span(f.Restarts/20, 3*f.Restarts)
		}
		p := w.newProcess(h, life)
		p.run(age, r.chance(0.5))
		time.Sleep(p.slot(w.now()+r.span(time.Millisecond, 5*time.Minute), lifeLane) - w.now())
	}
}
