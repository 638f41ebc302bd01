package sim

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// Options of Run. The zero value is three workers of one type, with priorities 0, 1 and 2,
// that compete for one hour in a perfect world for slots of one minute.
type Options struct {
	// Seed decides all draws. The same Options and Seed make the same run, to the
	// nanosecond.
	Seed int64
	// Workers is the number of workers. Default: 3.
	Workers int
	// Length is the simulated time. Default: 1 h.
	Length time.Duration
	// Begin is the true time at which the run begins, in 2000 or later. Default: the beginning of
	// the year 2000, in UTC.
	Begin time.Time
	// Worker returns the options of a worker, counted from 0. It must return the same each
	// time. Default: type "sim", instances "w0", "w1" …, the number as the priority (7 at
	// most), and an interval of one minute.
	Worker func(worker int) workerlease.Options
	// Callbacks returns the user's code of a process. The code must wait only by p.Clock or
	// by its context, and should call p.Work when it does the work that needs the lease.
	// Default: DefaultCallbacks.
	Callbacks func(p *Process) workerlease.Callbacks
	// Task, in place of Callbacks, returns the user's code of a process that uses
	// workerlease.Run. It must wait and report its work as Callbacks must. DefaultTask is
	// one. Default: none.
	Task func(p *Process) workerlease.Task
	// Hints: the store tells workers of releases, as store.Watcher says.
	Hints bool
	// Orders: operators give orders at random, as operate.Desk.Give and others say, one in this
	// time on average. Default: none.
	Orders time.Duration
	// Triggers: operators ask for one more run of the first worker's job at random, as operate.Desk.Give says, one in
	// this time on average. Default: none.
	Triggers time.Duration
	// Desk wraps the ledger by which operators give orders. Default: it isn't wrapped.
	Desk func(store.Ledger) store.Ledger
	// Roster: workers say in the store's roster what they do, as workerlease.ClientOptions.Roster says. Not
	// with Hints.
	Roster bool
	// OneMachine: the store goes by the clock of the machine that all hosts are, as package sqlite
	// does, and its stamps say so (store.Stamp.Boottime). Faults.Drift, and clocks that are stepped
	// within Faults.Skew, make that a lie, which no store may tell.
	OneMachine bool
	// Faults say what goes wrong. Default: nothing.
	Faults Faults
	// Client makes the client of a process. Default: workerlease.NewClient. Use it to add a
	// Logger, or to wrap the ledger or the clock. The world doesn't know if your wrapper makes
	// calls, slows them down or changes answers, and may then demand the impossible. An
	// Observer of yours must pass each event on to the Observer of the given options.
	Client func(store.Ledger, workerlease.ClientOptions) *workerlease.Client
	// Trace keeps a trace of all calls, callbacks and events.
	Trace bool
}

// Result is the outcome of a run.
type Result struct {
	Seed int64
	// Violations are broken promises, each with its time and its process: two holders at work
	// at once, work outside of a window, a panic, a token that didn't grow, a callback out of
	// order, a record that breaks a rule of the ledger. The first 20 are kept. There are none
	// unless your code, or the engine, is wrong.
	Violations []string
	// Overlaps are pairs of holders at work at once beyond the assumptions. Within the
	// assumptions, an overlap is a violation.
	Overlaps []*Overlap
	// Refused counts the writes that the world's fenced resource refused. That is normal: the
	// world delays some writes of Process.Work. Stale counts the writes that it accepted and
	// should have refused.
	Stale, Refused int
	// Leases in the order in which they began.
	Leases []*Lease
	// Missed counts slots that workers reported as missed, Inversions those that they
	// reported as lost to a lower priority.
	Missed, Inversions int
	// Demands counts how often the world knew which worker had to get a slot.
	Demands Demands
	// Down is when the store refused all calls, or elected a primary.
	Down []Span
	// Wrong are the stretches in which the store's clock was wrong. A stretch of a nanosecond
	// stands for one wrong stamp for each client.
	Wrong []Span
	// Planted are the records that the world added to the ledger itself.
	Planted []Planted
	// Struck counts the faults.
	Struck Struck
	// Trace has one line for each call, callback and event, if Options.Trace is set.
	Trace string
	// Records is the ledger at the end, by worker type, oldest first.
	Records map[string][]store.Record

	length time.Duration
	works  int // calls of Process.Work
	more   int // violations that were not kept
}

// Span is a stretch of true time, from the beginning of the run.
type Span struct{ From, To time.Duration }

// Planted is a record that no worker wrote.
type Planted struct {
	At     time.Duration
	Kind   Fault
	Record store.Record
}

// Check fails the test for each violation. It also fails if nothing was tested: no worker
// ever got a lease, or no code called Process.Work.
func (r *Result) Check(t testing.TB) {
	t.Helper()
	for _, v := range r.Violations {
		t.Errorf("seed %d: %s", r.Seed, v)
	}
	if r.more > 0 {
		t.Errorf("seed %d: … and %d more", r.Seed, r.more)
	}
	switch {
	case len(r.Violations) > 0:
		t.Logf("repeat it with the same Options and Seed: %d; set Trace, and Result.Trace tells the story", r.Seed)
	case len(r.Leases) == 0:
		t.Errorf("seed %d: no worker ever got a lease in %v (%d slots were missed): nothing was tested", r.Seed, r.length, r.Missed)
	case r.works == 0:
		t.Errorf("seed %d: the code under test never called Process.Work: whether anybody else works at the same time was not checked", r.Seed)
	}
}

// Run simulates. It runs in its own testing/synctest bubble, so it takes hardly any real
// time, and must not be called inside a bubble.
func Run(t *testing.T, o Options) *Result {
	t.Helper()
	if err := o.check(); err != nil {
		t.Fatalf("simulate: %v", err)
	}
	o = o.filled()
	var w *world
	synctest.Test(t, func(*testing.T) {
		if wait := time.Until(o.Begin); wait > 0 {
			time.Sleep(wait) // Time in a bubble begins in 2000.
		}
		w = newWorld(o)
		w.run()
	})
	if w.failed != nil {
		t.Fatalf("simulate: %v", w.failed)
	}
	return w.result()
}

// check returns one error for each wrong option.
func (o Options) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Workers < 0 || o.Workers > 1000 {
		bad("Workers is %d: must be 0 … 1000", o.Workers)
	}
	if o.Length < 0 {
		bad("Length is %v: must not be negative", o.Length)
	}
	f := reflect.ValueOf(o.Faults)
	for i := range f.NumField() {
		name := f.Type().Field(i).Name
		switch v := f.Field(i).Interface().(type) {
		case time.Duration:
			if v != 0 && v < time.Microsecond {
				bad("Faults.%s is %v: must be 0 or at least 1µs", name, v)
			}
		case float64:
			most := 1.0 // a probability
			if name == "Drift" {
				most = 0.5
			}
			if v < 0 || v > most {
				bad("Faults.%s is %v: must be 0 … %v", name, v, most)
			}
		}
	}
	if o.Task != nil && o.Callbacks != nil {
		bad("Task and Callbacks are set: set only one of them")
	}
	if o.Roster && o.Hints {
		bad("Roster and Hints are set: set only one of them")
	}
	s := o.Faults
	if s.Unasked < 0 || s.Unasked > len(s.Off) {
		bad("Faults.Unasked is %d: must be 0 … %d, the number of Faults.Off", s.Unasked, len(s.Off))
	}
	common := s.Failed + s.LostReply + s.BlackHole + s.Throttled
	if reads, appends := common+s.Stale, common+s.OwnConflict+s.Late+s.Rollback; max(reads, appends) > 1 {
		bad("Faults: the probabilities add up to %.2f for reads and %.2f for appends: a call meets one fault, so to at most 1", reads, appends)
	}
	return errors.Join(errs...)
}

func (o Options) filled() Options {
	if o.Workers == 0 {
		o.Workers = 3
	}
	if o.Length == 0 {
		o.Length = time.Hour
	}
	if o.Worker == nil {
		o.Worker = func(worker int) workerlease.Options {
			return workerlease.Options{
				WorkerType: "sim", InstanceID: fmt.Sprint("w", worker),
				Priority: min(worker, 7), LeaseInterval: time.Minute,
			}
		}
	}
	if o.Callbacks == nil && o.Task == nil {
		o.Callbacks = DefaultCallbacks
	}
	if o.Client == nil {
		o.Client = workerlease.NewClient
	}
	f := &o.Faults
	if f.LateBy == 0 {
		f.LateBy = 24 * time.Hour
	}
	if f.WrongBy == 0 {
		f.WrongBy = 30 * 365 * 24 * time.Hour
	}
	if f.WrongClockBy == 0 {
		f.WrongClockBy = 24 * time.Hour
	}
	if f.JumpBy == 0 {
		f.JumpBy = 10 * time.Minute
	}
	return o
}

func (w *world) result() *Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes.Lock()
	defer w.notes.Unlock()
	w.judge()
	r := &Result{
		Seed: w.o.Seed, Violations: w.violations, Overlaps: w.overlaps, Leases: w.leases, Missed: w.missed,
		Inversions: w.inversions, Demands: w.demands, Planted: w.plantings,
		length: w.o.Length, works: w.works, more: w.more,
		Struck: w.tally.struck(), Records: map[string][]store.Record{},
	}
	slices.SortStableFunc(r.Leases, func(a, b *Lease) int { return cmp.Compare(a.Began, b.Began) })
	for _, x := range w.resources {
		r.Stale += x.stale
		r.Refused += x.refused
	}
	w.traceOutages()
	for _, s := range slices.Concat(w.server.outages, w.server.elections, w.server.votes) {
		r.Down = append(r.Down, Span{s.from, s.to})
	}
	for _, s := range slices.Concat(w.server.lies, w.server.wrong) {
		r.Wrong = append(r.Wrong, Span{s.from, s.to})
	}
	for workerType, l := range w.ledgers {
		if workerType != store.Sightings {
			r.Records[workerType] = l.list
		}
	}
	// Events of one process at one instant may come in any order.
	slices.SortStableFunc(w.lines, func(a, b line) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return strings.Compare(a.text, b.text)
	})
	var b strings.Builder
	for _, l := range w.lines {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	r.Trace = b.String()
	return r
}

// beyond reports whether the faults go beyond the assumptions of the protocol.
func (f Faults) beyond() bool {
	return f.Jumps > 0 || f.Freezes > 0 || f.Rollback > 0 || f.Drift > 0.001 || f.TTL > 0 ||
		f.WrongClocks > 0 || f.FirstStamps > 0 || f.Apart > 0 || f.Losses > 0
}
