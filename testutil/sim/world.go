package sim

import (
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
)

// world runs the engine in simulated processes, and alone knows true time. It
// lives inside a synctest bubble.
type world struct {
	o      Options
	origin time.Time
	beyond bool // something beyond the assumptions goes on
	hosts  []*host
	server *server
	tally  tally
	lives  sync.WaitGroup

	mu         sync.Mutex // guards what follows; taken before any lock of the engine
	ledgers    map[string]*ledger
	planted    map[string]bool // claims of records that no worker wrote
	resources  map[string]*resource
	leases     []*Lease
	overlaps   []*Overlap
	missed     int
	inversions int
	strays     []Planted

	notes      sync.Mutex // guards what follows; taken last
	violations []string
	lines      []line
	alarms     []alarm
}

// line is one of a trace.
type line struct {
	at   time.Duration
	who  int64
	text string
}

// alarm is when a worker told that the store can't be trusted.
type alarm struct {
	at time.Duration
	by *Process
}

func newWorld(o Options) *world {
	f := o.Faults
	w := &world{
		o: o, origin: time.Now(), beyond: f.beyond(), server: newServer(o), tally: newTally(),
		ledgers: map[string]*ledger{}, planted: map[string]bool{}, resources: map[string]*resource{},
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

// later calls f on a goroutine of its own.
func (w *world) later(d time.Duration, f func()) { time.AfterFunc(d, f) }

// run lets the time pass.
func (w *world) run() {
	for _, h := range w.hosts {
		w.lives.Go(func() { w.live(h) })
	}
	if w.plants() {
		w.lives.Go(w.plant)
	}
	w.lives.Wait()
	for _, s := range []spells{w.server.elections, w.server.steps, w.server.jumps} {
		w.tally.passed(s, 0, w.o.Length)
	}
	synctest.Wait()
}

// live is the life of one worker: process after process.
func (w *world) live(h *host) {
	r := cast(w.o.Seed, forLife, h.worker, 0)
	// Not all start at once.
	time.Sleep(r.upTo(time.Minute) + time.Duration(h.worker*lanes) + 1)
	for life := 0; w.now() < w.o.Length; life++ {
		age := w.o.Length
		if f := w.o.Faults; f.Restarts > 0 {
			age = r.span(f.Restarts/20, 3*f.Restarts)
		}
		p := w.newProcess(h, life)
		p.run(age, r.chance(0.5))
		time.Sleep(p.slot(w.now()+r.span(time.Millisecond, 5*time.Minute), lifeLane) - w.now())
	}
}

// plants reports whether anybody plants records.
func (w *world) plants() bool {
	f := w.o.Faults
	return f.Poisons > 0 || f.NewerVersions > 0 || f.HugeSeqs > 0
}

// violate notes what must not have happened.
func (w *world) violate(format string, args ...any) {
	at := w.now()
	w.notes.Lock()
	defer w.notes.Unlock()
	if len(w.violations) < 20 {
		w.violations = append(w.violations, fmt.Sprintf("at %v: ", at)+fmt.Sprintf(format, args...))
	}
}

// alarm notes that a worker told of a store that can't be trusted.
func (w *world) alarm(p *Process) {
	at := w.now()
	w.notes.Lock()
	defer w.notes.Unlock()
	w.alarms = append(w.alarms, alarm{at, p})
}

// tracef adds a line to the trace, if one is kept. What a dead process does
// doesn't count.
func (p *Process) tracef(format string, args ...any) {
	w := p.world
	if !w.o.Trace || p.dead.Load() {
		return
	}
	at := w.now()
	w.notes.Lock()
	defer w.notes.Unlock()
	w.lines = append(w.lines, line{at, p.number, fmt.Sprintf("%v %v ", at, p) + fmt.Sprintf(format, args...)})
}

// plant puts records into the ledger that no worker of this version wrote.
func (w *world) plant() {
	p := &Process{world: w, lanes: 1023 * lanes}
	f := w.o.Faults
	r := cast(w.o.Seed, forStray, 0, 0)
	type sort struct {
		every time.Duration
		kind  Fault
		next  time.Duration
	}
	sorts := []*sort{{f.Poisons, Poison, 0}, {f.NewerVersions, NewerVersion, 0}, {f.HugeSeqs, HugeSeq, 0}}
	for _, s := range sorts {
		s.next = r.upTo(2*s.every + 1)
	}
	for {
		var first *sort
		for _, s := range sorts {
			if s.every > 0 && (first == nil || s.next < first.next) {
				first = s
			}
		}
		if first.next >= w.o.Length {
			return
		}
		at := w.now()
		time.Sleep(p.slot(max(first.next, at)+1, lifeLane) - at)
		first.next += r.span(first.every/4, 2*first.every)
		w.plantOne(first.kind, &r)
	}
}

func (w *world) plantOne(kind Fault, r *roll) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.ledger(w.hosts[0].options.WorkerType)
	head := l.head()
	now := w.origin.Add(w.now()).Truncate(time.Millisecond)
	stray := store.Record{
		WorkerType: w.hosts[0].options.WorkerType, Seq: head.Seq + 1, Kind: store.KindGrant,
		Claim: fmt.Sprintf("stray-%x", r.next()), InstanceID: "stray", Token: max(now.UnixMilli(), head.Token+1),
		WindowStart: now, WindowEnd: now.Add(time.Minute),
	}
	switch kind {
	case NewerVersion:
		if head.Seq == 0 || head.CheckEnvelope() != nil || w.planted[head.Claim] {
			return
		}
		stray = head
		stray.Seq++
		stray.Kind, stray.Metadata, stray.ReadAt = "note", "from a later version", time.Time{}
		stray.WindowStart = stray.WindowEnd
	case HugeSeq:
		stray.Seq = store.MaxSeq + 1 + int64(r.below(1<<40))
	default:
		switch r.below(4) {
		case 0:
			stray.WindowStart = now.AddDate(99, 0, 0)
			stray.WindowEnd = stray.WindowStart.Add(time.Minute)
		case 1:
			stray.Defect = "not a record"
		case 2:
			stray.Token = now.AddDate(1, 0, 0).UnixMilli()
		case 3:
			stray.WindowEnd = stray.WindowStart.AddDate(2, 0, 0)
		}
		w.planted[stray.Claim] = true
	}
	if l.insert(stray) {
		w.tally.strike(kind)
		w.strays = append(w.strays, Planted{w.now(), kind, stray})
		if kind != HugeSeq {
			l.first[stray.Seq] = stray.Claim
		}
	}
}
