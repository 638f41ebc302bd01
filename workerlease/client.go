package workerlease

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	"go.uber.org/zap"

	"github.com/slotlease/slotlease/internal/boottime"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
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
	// Logger gets every event as a line: see LogTo. Default: none. For slog, set Observer
	// to LogToSlog.
	Logger *zap.Logger
	// Observer gets every event: see [Observers] for several. Default: none.
	Observer Observer
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
	ledger   store.Ledger
	clock    clock.Clock
	local    func() time.Duration
	boot     bool
	observer Observer
	rand     io.Reader
	rules    *machine.Rules // standard, but for tests that break one

	mu   sync.Mutex
	line timeline.Line

	activity activity
	roster   roster
	leases   leases
	watching watching
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
	c := &Client{ledger: ledger, clock: o.Clock, rand: o.Rand, rules: &machine.Standard}
	if o.Roster {
		c.roster.wanted = true
		c.roster.ledger, _ = ledger.(store.Roster)
	}
	c.local, c.boot = localClock(o.Clock)
	_, c.line.Boottime = boottime.Of(o.Clock)
	switch {
	case o.Logger == nil:
		c.observer = o.Observer
	case o.Observer == nil:
		c.observer = LogTo(o.Logger)
	default:
		c.observer = Observers(LogTo(o.Logger), o.Observer)
	}
	return c
}

// StartLeasing starts a worker on its own client: see Client.StartLeasing. The client has
// default options, except that warnings and errors are logged to slog.Default(). To log
// elsewhere, or nothing, make a client with NewClient.
func StartLeasing(ctx context.Context, ledger store.Ledger, o Options, cb Callbacks) (*WorkerLease, error) {
	return newDefaultClient(ledger).StartLeasing(ctx, o, cb)
}

// StartLeasing starts a worker that calls back when it gets a lease and when that ends. It
// doesn't wait for the store. A store that is down is retried with backoff for ever, and
// shows in Status and the Observer. Two calls for one worker type start two workers that
// compete.
//
// An error wraps ErrOptions: it lists all bad options at once (see [OptionErrors]).
//
// When ctx ends, the worker stops as by StopLeasing, within 10 s; Done is closed when it
// has. The contexts of leases have the values of ctx.
func (c *Client) StartLeasing(ctx context.Context, o Options, cb Callbacks) (*WorkerLease, error) {
	l := launch{what: "start leasing"}
	if o.Job != nil {
		l.wrong.add(OptionError{Field: "Job", found: "is set", Rule: "callbacks can't report that the work is done: use Run or StartTask"})
	}
	if cb.LeaseAllocated == nil {
		l.wrong.missing("LeaseAllocated", "it is required")
	}
	return c.launch(ctx, o, cb, l)
}

// launch is how a worker is started.
type launch struct {
	what    string
	wrong   optionErrors       // what is wrong besides the options and the ledger
	prepare func(*WorkerLease) // before it runs; may be nil
}

// launch starts a worker.
func (c *Client) launch(ctx context.Context, o Options, cb Callbacks, l launch) (*WorkerLease, error) {
	resolved, errs := c.resolve(o)
	if c.ledger == nil {
		errs.missing("ledger", "open one with store/mongo, store/cosmos, store/sqlite or store/memory")
	}
	errs = append(errs, l.wrong...)
	if len(errs) == 0 {
		errs.schedule(resolved.Schedule, c.clock.Now()) // So far it was looked at elsewhere.
	}
	if _, err := io.ReadFull(c.rand, make([]byte, 16)); err != nil {
		errs.add(OptionError{
			Field: "ClientOptions.Rand", found: fmt.Sprintf("fails: %v", err), Rule: "leave it nil for crypto/rand", err: err,
		})
	}
	c.roster.check(&errs, &resolved)
	if err := errs.join(); err != nil {
		return nil, fmt.Errorf("%s %.70q: %w: %w", l.what, o.WorkerType, ErrOptions, err)
	}
	w := c.newWorker(ctx, resolved, cb)
	if l.prepare != nil {
		l.prepare(w)
	}
	// Nobody else may run the worker before it is complete, though another one may nudge it, and
	// ctx may have ended already.
	w.inbox.working = true
	c.activity.join(w)
	c.watch(w)
	c.attend(w)
	w.post(arrival{event: machine.Wake{}, observed: []Event{Started{Worker: w.label(), Self: w}}})
	w.unhook = context.AfterFunc(ctx, func() {
		limited, cancel := c.clock.WithTimeout(context.Background(), stopGrace)
		defer cancel()
		_ = w.stop(limited, func(err error) { w.stopFailed.Store(&StopFailed{Worker: w.label(), Err: err}) })
	})
	go w.run()
	return w, nil
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
// than was known, only what holders wait for has.
func (c *Client) sample(by *WorkerLease, s store.Stamp, sent, received time.Duration) (timeline.Outcome, timeline.Interval) {
	c.mu.Lock()
	was := c.line.At(received, c.line.Epoch())
	outcome := c.line.Add(s, sent, received)
	now := c.line.At(received, c.line.Epoch())
	c.mu.Unlock()
	switch {
	case outcome == timeline.Contradicted || outcome == timeline.Jumped:
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
