package workerlease

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/boottime"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/option"
	"github.com/slotlease/slotlease/workerlease/internal/self"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// ClientOptions of NewClient. The zero value is ready for use.
type ClientOptions struct {
	// Clock is the local clock: timers, and the reading that store time is measured
	// against. Its time of day plays no part. Default: NewSystemClock, which is the
	// bubble's clock inside a testing/synctest bubble. A test outside of a bubble can use
	// testutil/clocks. A clock may have a method Boottime() time.Duration, a reading that
	// goes on while the machine is suspended. Drift between it and store time is allowed for in
	// any case: only NewSystemClock can be known to be the clock that the store goes by.
	Clock clock.Clock
	// Logger gets every event as a line: see [event.LogTo]. Default: none.
	Logger *slog.Logger
	// Observer gets every event: see [event.Observers] for several, and [event.LogToZap] for zap. Default: none.
	Observer event.Observer
	// Roster lets each worker say in the ledger's roster what it does, for others and for those who look: see
	// [store.Roster], Client.Candidates and Options.Policy. A worker writes one document when it starts,
	// once for each slot but at least every 5 min and at most every 10 s, and 10 s
	// after the last one when something has changed. What fails there delays and changes no lease. Default: none.
	Roster bool
	// Rand is the source of claim ids and of random places within a turn. It must be safe
	// for concurrent use, and must not fail: a worker panics if it does. Default:
	// crypto/rand.
	Rand io.Reader
}

// Client runs workers of any number of worker types on one ledger. They share one
// measurement of store time, one clock and one observer. It is safe for concurrent use, and
// needs no closing.
type Client struct {
	ledger    store.Ledger
	described store.Description
	follower  store.Follower // the ledger, if it is one
	clock     clock.Clock
	local     func() time.Duration
	boot      bool
	origin    time.Time // of ticks
	observer  event.Observer
	rand      io.Reader
	rules     *machine.Rules // standard, but for tests that break one

	mu      sync.Mutex
	line    timeline.Line
	history string        // the newest name of the store's
	named   time.Duration // the local reading at which that came first

	activity activity
	roster   roster
	leases   leases
	watching watching
	ready    readiness
	down     down
	answers  atomic.Int64 // that workers have had of the store
}

// NewClient returns a client of a ledger. It logs nothing unless asked to. The caller closes
// the ledger after all workers have stopped.
func NewClient(ledger store.Ledger, o ClientOptions) *Client {
	if o.Clock == nil {
		o.Clock = NewSystemClock()
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	c := &Client{ledger: ledger, clock: o.Clock, rand: o.Rand, rules: &machine.Standard, origin: o.Clock.Now(), ready: readiness{gate: make(chan struct{}, 1)}}
	if ledger != nil {
		c.follower, c.described = store.AsFollower(ledger), store.Describe(ledger)
	}
	if o.Roster {
		c.roster.wanted = true
		c.roster.ledger, _ = store.As[store.Roster](ledger)
	}
	c.local, c.boot = self.Clock(o.Clock)
	_, c.line.Boottime = boottime.Of(o.Clock)
	if c.observer = o.Observer; o.Logger != nil {
		c.observer = event.Observers(event.LogTo(o.Logger), o.Observer)
	}
	return c
}

// newDefaultClient is the client of the package-level functions. The default logger is
// looked up for each event, since a program may set it later.
func newDefaultClient(ledger store.Ledger) *Client {
	return NewClient(ledger, ClientOptions{Observer: event.Warnings(event.LogTo(nil))})
}

// made reports that NewClient has made the client: the zero one, and nil, do nothing but say so.
func (c *Client) made() bool { return c != nil && c.clock != nil }

// StartLeasing starts a worker on its own client: see Client.StartLeasing. The client has
// default options, except that warnings and errors are logged to slog.Default(). To log
// elsewhere, or nothing, make a client with NewClient.
func StartLeasing(ctx context.Context, ledger store.Ledger, o Options, cb Callbacks) (*WorkerLease, error) {
	return newDefaultClient(ledger).StartLeasing(ctx, o, cb)
}

// StartLeasing starts a worker that calls back when it gets a lease and when that ends. It
// asks the store first whether workers can use it: see Client.Ready. It waits for a store that
// doesn't answer for 5 s of the client's clock; then, and later, that is retried with backoff for ever, and
// shows in Status and the Observer. Two calls for one worker type start two workers that
// compete.
//
// An error wraps ErrOptions: it lists all bad options at once (see [OptionErrors]). Or it wraps
// store.ErrMissing, ErrRefused, ErrDenied, ErrInvalid or ErrClosed, and says what to do; no worker was started then. If
// the store gives such an answer later, the worker goes on, and says so.
//
// When ctx ends, the worker stops as by StopLeasing, within 10 s (after Options.DrainTimeout); Done is closed when it
// has. The contexts of leases have the values of ctx.
func (c *Client) StartLeasing(ctx context.Context, o Options, cb Callbacks) (*WorkerLease, error) {
	l := launch{what: "start leasing", until: ctx}
	if o.Job != nil {
		l.wrong.Add(option.Error{Field: "Job", Found: "is set", Rule: "callbacks can't report that the work is done: use Run or StartTask"})
	}
	if cb.LeaseAllocated == nil {
		l.wrong.Missing("LeaseAllocated", "it is required")
	}
	return c.launch(ctx, o, cb, l)
}

// launch is how a worker is started.
type launch struct {
	what    string
	wrong   option.Errors      // what is wrong besides the options and the ledger
	until   context.Context    // ends the check of the ledger; nil: none is made
	prepare func(*WorkerLease) // before it runs; may be nil
}

// launch starts a worker.
func (c *Client) launch(ctx context.Context, o Options, cb Callbacks, l launch) (*WorkerLease, error) {
	if !c.made() {
		var errs option.Errors
		c.checkLedger(&errs)
		return nil, fmt.Errorf("%s %.70q: %w: %w", l.what, o.WorkerType, ErrOptions, errs.Join())
	}
	resolved, errs := c.resolve(o)
	c.checkLedger(&errs)
	errs = append(errs, l.wrong...)
	if len(errs) == 0 {
		checkSchedule(&errs, resolved.Schedule, c.clock.Now()) // So far it was looked at elsewhere.
	}
	if _, err := io.ReadFull(c.rand, make([]byte, 16)); err != nil {
		errs.Add(option.Error{
			Field: "ClientOptions.Rand", Found: fmt.Sprintf("fails: %v", err), Rule: "leave it nil for crypto/rand", Cause: err,
		})
	}
	c.roster.check(&errs, &resolved)
	if err := errs.Join(); err != nil {
		return nil, fmt.Errorf("%s %.70q: %w: %w", l.what, o.WorkerType, ErrOptions, err)
	}
	if l.until != nil {
		told := func(err error) {
			if c.observer != nil {
				c.observer.Observe(event.StoreFailed{Worker: event.Worker{WorkerType: resolved.WorkerType, InstanceID: resolved.InstanceID}, Operation: "check", Err: err})
			}
		}
		if err := c.check(l.until, resolved.WorkerType, told); err != nil {
			return nil, fmt.Errorf("%s %q: %w", l.what, resolved.WorkerType, err)
		}
	}
	w := c.newWorker(ctx, resolved, cb)
	if l.prepare != nil {
		l.prepare(w)
	}
	c.attend(w)
	c.begin(w, func() func() bool {
		return context.AfterFunc(ctx, func() {
			limited, cancel := c.clock.WithTimeout(context.Background(), w.options.DrainTimeout+stopGrace)
			defer cancel()
			_ = w.stop(limited, func(err error) { w.stopFailed.Store(&event.StopFailed{Worker: w.label(), Err: err}) })
		})
	})
	return w, nil
}

// begin lets a worker run. hook has it stopped by something, and returns what ends that.
func (c *Client) begin(w *WorkerLease, hook func() func() bool) {
	// Nobody else may run the worker before it is complete, though another one may nudge it, and
	// what stops it may have happened already.
	w.inbox.working = true
	c.activity.join(w)
	c.watch(w)
	w.post(arrival{event: machine.Wake{}, observed: []event.Event{event.Started{Worker: w.label(), Self: w}}})
	w.unhook = hook()
	go w.run()
}

// stopGrace is how long a worker may take to stop when its context ends.
const stopGrace = 10 * time.Second

// reading is what the client knows of store time at a local reading.
type reading struct {
	now   timeline.Interval // contains store time
	local time.Duration
	jumps int
}

// reading is for a reader settled up to an epoch. Each takes a call of the system.
func (c *Client) reading(settled int) reading {
	// Under the mutex, so that Earliest never decreases from one caller to the next.
	c.mu.Lock()
	defer c.mu.Unlock()
	local := c.local()
	return reading{now: c.line.At(local, settled), local: local, jumps: c.line.Jumps()}
}

// moment is this moment, for the machine.
func (c *Client) moment(settled int) machine.Moment {
	var m machine.Moment
	if _, err := io.ReadFull(c.rand, m.Draw[:]); err != nil {
		// Claim ids that repeat would let two workers hold one lease.
		panic(fmt.Sprintf("workerlease: ClientOptions.Rand failed: %v", err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.Local = c.local()
	m.Now = c.line.At(m.Local, settled)
	m.Age = c.line.Age(m.Local)
	m.Epoch, m.Jumps, m.Began = c.line.Epoch(), c.line.Jumps(), c.line.Began()
	m.InQuestion, m.Single = c.line.InQuestion(), c.line.Single()
	m.Newest = c.line.At(m.Local, m.Epoch)
	m.History = c.history
	return m
}

// start is the state of a worker that starts now.
func (c *Client) start() machine.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return machine.Start(c.line.Epoch(), c.line.Settled(c.local()), c.line.Jumps(), c.line.InQuestion(), c.local())
}

// sample adds a stamp that a worker got to the time line, and says what it did. If
// that made the interval wider, all workers must look at it: what they wait for,
// the end of a lease above all, may have come nearer. If the servers' clocks are further apart
// than was known, only what holders wait for has. All look at another name of the store's history, too.
func (c *Client) sample(by *WorkerLease, s store.Stamp, sent, received time.Duration) (timeline.Outcome, timeline.Interval) {
	c.mu.Lock()
	was := c.line.At(received, c.line.Epoch())
	outcome := c.line.Add(s, sent, received)
	now := c.line.At(received, c.line.Epoch())
	// What was asked before this name came may have been answered before the store had it.
	renamed := s.History != "" && s.History != c.history && (c.history == "" || sent > c.named)
	if renamed {
		c.history, c.named = s.History, received
	}
	c.mu.Unlock()
	switch {
	case outcome == timeline.Contradicted || outcome == timeline.Jumped || renamed:
		c.review(by)
	case was.Known() && (now.Latest.After(was.Latest) || was.Steady() && !now.Steady()):
		c.hasten(now.Latest.Sub(was.Latest))
	}
	return outcome, now
}

// after calls f on its own goroutine after d of the client's clock, unless
// stop was called before.
func (c *Client) after(d time.Duration, f func()) (stop func()) {
	t := c.clock.AfterFunc(d, f)
	return func() { t.Stop() }
}
