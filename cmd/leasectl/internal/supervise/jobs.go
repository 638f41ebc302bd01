package supervise

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Jobs are commands that take part in leasing on one ledger, each for a worker type of its own. They share a client, and
// so a measurement of store time, and nothing else: each has a guard, a deadline and a lease of its own.
type Jobs struct {
	ledger   store.Ledger
	client   *workerlease.Client
	log      *runlog.Log
	also     event.Observer // may be nil
	refused  *refusals
	breakOff func() // the reads that are under way

	over   chan struct{} // closed when all are to end
	ending sync.WaitGroup

	mu     sync.RWMutex
	closed bool            // none is started any more
	all    map[string]*job // by worker type
}

// Options of NewJobs.
type Options struct {
	// Roster lets the workers say in the ledger's roster what they do.
	Roster bool
	// Observer gets every event, after that of its job. Default: none.
	Observer event.Observer
	// Log gets what is about no job.
	Log *runlog.Log
}

// NewJobs returns jobs of a ledger. There are none yet.
func NewJobs(ledger store.Ledger, o Options) *Jobs {
	stopping, stop := context.WithCancel(context.Background())
	s := &Jobs{
		ledger: ledger, log: o.Log, also: o.Observer, refused: newRefusals(), breakOff: stop,
		over: make(chan struct{}), all: map[string]*job{},
	}
	s.client = workerlease.NewClient(breakingOff(ledger, stopping), workerlease.ClientOptions{Observer: s, Roster: o.Roster})
	return s
}

// Observe passes an event on to the job that it is about.
func (s *Jobs) Observe(e event.Event) {
	s.mu.RLock()
	j := s.all[e.Of().WorkerType]
	s.mu.RUnlock()
	o := observer{log: s.log, extended: func(event.Lease) {}, refusals: s.refused, also: s.also}
	if j != nil {
		o.log, o.extended, o.also = j.Log, j.extended, j.also
	}
	o.Observe(e)
}

// admitLocked takes in a job that launch is to be called for. The caller holds mu.
func (s *Jobs) admitLocked(w Wanted) *job {
	j := newJob(w)
	j.also = event.Observers(w.Observer, s.also)
	s.all[w.Options.WorkerType] = j
	s.ending.Add(1) // Stop waits until it has begun.
	return j
}

// launch lets a command take part in leasing. An error is about its options.
func (s *Jobs) launch(ctx context.Context, j *job) error {
	defer s.ending.Done()
	defer close(j.begun)
	worker, err := j.begin(context.WithoutCancel(ctx), s.client)
	if err != nil {
		s.mu.Lock()
		delete(s.all, j.Options.WorkerType)
		s.mu.Unlock()
		j.over()
		return exit.BadUsage("", err)
	}
	s.mu.Lock()
	j.worker = worker
	s.mu.Unlock()
	j.Log.Began(j.Options, j.Options.Job != nil || j.OnExit == Default || j.OnExit == Release)
	if j.Began != nil {
		j.Began(worker)
	}
	return nil
}

// list are the jobs by name.
func (s *Jobs) list() []*job {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []*job
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		all = append(all, s.all[name])
	}
	return all
}

// Each calls f for each worker that has begun, by name.
func (s *Jobs) Each(f func(*workerlease.WorkerLease, workerlease.Options)) {
	for _, j := range s.list() {
		s.mu.RLock()
		worker := j.worker
		s.mu.RUnlock()
		if worker != nil {
			f(worker, j.Options)
		}
	}
}

// Unfit returns a channel that gets an error once the ledger proves unfit for leasing, which it is asked at once, or ctx
// ends.
func (s *Jobs) Unfit(ctx context.Context) <-chan error {
	unfit, checked, refused := make(chan error, 1), check(ctx, s.ledger, s.log), s.refused.unfit(ctx, s.ledger)
	go func() {
		select {
		case err := <-checked:
			unfit <- err
		case err := <-refused:
			unfit <- err
		case <-ctx.Done():
		}
	}()
	return unfit
}

// check looks whether a ledger is fit for leasing. An error comes only if it isn't.
func check(ctx context.Context, l store.Ledger, log *runlog.Log) <-chan error {
	unfit := make(chan error, 1)
	go func() {
		if err := log.Check(ctx, func(report func(error)) error { return askLedger(ctx, l, report) }); err != nil {
			unfit <- err
		}
	}()
	return unfit
}

// Stop ends all jobs, at once: ctx has ended, or the ledger is unfit. It returns why the ledger turned out to be unfit, if
// it has only now, and what went wrong. It is called once.
func (s *Jobs) Stop(ctx context.Context, isUnfit error) (unfit, err error) {
	defer s.breakOff()
	s.mu.Lock()
	s.closed = true
	close(s.over)
	s.mu.Unlock()
	s.ending.Wait()
	all := s.list()
	unfits, errs := make([]error, len(all)), make([]error, len(all))
	var ended sync.WaitGroup
	for i, j := range all {
		ended.Go(func() {
			defer j.close()
			errs[i] = j.end(ctx, isUnfit, context.Cause(ctx), s.breakOff)
			if st := j.worker.Status(); errs[i] != nil && st.Failures > 0 && barred(st.LastError) {
				unfits[i] = st.LastError // It is why stopping failed, and no log line says so.
			}
		})
	}
	ended.Wait()
	unfit = isUnfit
	for i, j := range all {
		if j.kept.error() != nil { // That processes are left matters more.
			errs[0], errs[i] = errs[i], errs[0]
		}
		if unfit == nil {
			unfit = unfits[i]
		}
	}
	if len(errs) == 1 {
		return unfit, errs[0]
	}
	return unfit, exit.Join(errs...)
}

// runs counts the runs of a command, which may be told to begin no more.
type runs struct {
	mu     sync.Mutex
	count  int
	barred bool
	idle   chan struct{} // closed when barred and none goes on
}

// enter begins a run, unless that is barred.
func (r *runs) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.barred {
		return false
	}
	r.count++
	return true
}

func (r *runs) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count--; r.barred && r.count == 0 {
		close(r.idle)
	}
}

// bar lets none begin any more. The channel is closed when none goes on.
func (r *runs) bar() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.barred, r.idle = true, make(chan struct{})
	if r.count == 0 {
		close(r.idle)
	}
	return r.idle
}

// unlessBarred is a task that doesn't begin once the job is to end.
func (j *job) unlessBarred(run workerlease.Task) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		if !j.runs.enter() {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		defer j.runs.leave()
		return run(ctx, l)
	}
}
