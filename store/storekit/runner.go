package storekit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// RunnerOptions of NewRunner.
type RunnerOptions struct {
	// Store is the name of the store, with which its errors begin: "postgres". Required.
	Store string
	// Secrets are taken out of the texts of errors.
	Secrets Secrets
	// Meaning says what a driver's error means. It isn't asked about errors that match a sentinel of package
	// store. nil: nothing is known, so that the outcome of each is unknown.
	Meaning func(err error) Meaning
	// Text is what is shown of an error, whatever it means, unless Meaning says; the error's own text is then its detail. nil, or
	// an empty text: the error's own.
	Text func(err error) string
	// Grace, if not 0, is for a driver whose own error says what it waited for when the time was over: it gets the deadline
	// of the operation, and so much time after its end to return.
	Grace time.Duration
	// Clock measures Grace. Default: the real clock.
	Clock clock.Clock
	// Fitness, if not nil, is ensured before each operation, and doubted after errors whose Meaning isn't Sound.
	Fitness *Fitness
	// Linger, if not nil, is how long an operation goes on after its caller has gone, for a server that goes on with a statement
	// whose client has gone, and would have more and more of them: it is asked to end it, see Gone, and its answer is waited for.
	Linger func() time.Duration
	// Waits says what operations whose callers have gone wait for, such as a lock; empty if that isn't known. Optional.
	Waits func() string
}

// mostAbandoned is how many operations may go on after their callers have gone. With as many, others wait to begin.
const mostAbandoned = 2

// Runner performs the operations of one ledger. Its methods, and Run, are safe for concurrent use.
type Runner struct {
	o RunnerOptions
	// life ends with Close, and with it all operations.
	life   context.Context
	end    context.CancelFunc
	closed atomic.Bool

	mu    sync.Mutex     // for the count of calls, which doesn't grow once closed, and what follows
	calls sync.WaitGroup // goroutines of operations
	// abandoned are the operations that go on although their callers have gone, and fewer is closed when one of them ends.
	abandoned int
	fewer     chan struct{}
	running   int
}

// NewRunner returns a runner.
func NewRunner(o RunnerOptions) *Runner {
	r := &Runner{o: o, fewer: make(chan struct{})}
	if r.o.Clock == nil {
		r.o.Clock = clock.New()
	}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// Run performs an operation on a key, which may be empty; both are named in errors. It returns as soon as ctx
// ends or the ledger is closed, whatever the driver does meanwhile; do then goes on until it notices.
//
// do is called in a goroutine, with a context that is cancelled at the deadline of ctx but has none: a driver
// would measure it by the machine's wall clock, and would close its connection a moment early, whose error
// then hides that the time was over. The values of ctx are there, so that store.Charge and store.Tell work.
// With RunnerOptions.Grace it has the deadline.
func Run[T any](ctx context.Context, r *Runner, op, key string, do func(ctx context.Context) (T, error)) (T, error) {
	return run(ctx, r, op, key, r.o.Fitness, do)
}

// RunUnchecked is Run for what must work on a database that isn't fit, or not yet: Init and examinations.
func RunUnchecked[T any](ctx context.Context, r *Runner, op, key string, do func(ctx context.Context) (T, error)) (T, error) {
	return run(ctx, r, op, key, nil, do)
}

// Probe is RunUnchecked for a part of an examination: its errors name neither the store nor the operation. do may go
// on after the return, so that it must leave the caller's variables alone.
func Probe[T any](ctx context.Context, r *Runner, do func(ctx context.Context) (T, error)) (T, error) {
	v, err := RunUnchecked(ctx, r, "examine", "", do)
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return v, err
}

func run[T any](ctx context.Context, r *Runner, op, key string, fitness *Fitness, do func(ctx context.Context) (T, error)) (T, error) {
	var none T
	if err := r.begin(ctx); err != nil {
		return none, r.Failed(ctx, op, key, NotStored(err))
	}
	var last trouble
	var sends sending
	gone, leave := context.WithCancel(context.Background())
	base := ctx
	if r.o.Grace == 0 {
		base = context.WithoutCancel(ctx)
	}
	base = context.WithValue(context.WithValue(base, troubleKey{}, &last), sendingKey{}, &sends)
	inner, cancel := context.WithCancel(context.WithValue(base, goneKey{}, gone))
	forget := context.AfterFunc(r.life, cancel)
	var stay visit
	done := make(chan outcome[T], 1)
	go func() {
		defer r.calls.Done()
		defer leave()
		defer cancel()
		defer forget()
		var o outcome[T]
		o.value, o.err = attempt(inner, r, fitness, do)
		r.over(&stay)
		done <- o
	}()
	defer r.abandon(&stay, leave, cancel)
	var o outcome[T]
	select {
	case o = <-done:
	case <-ctx.Done():
		o = lastWord(r, done, func() error { return sends.end(last.after(fault.Ended(ctx))) })
	case <-r.life.Done():
		o = lastWord(r, done, func() error { return sends.end(last.after(store.ErrClosed)) })
	}
	if o.err != nil {
		return o.value, r.Failed(ctx, op, key, o.err)
	}
	return o.value, nil
}

// outcome is the result of an operation.
type outcome[T any] struct {
	value T
	err   error
}

// lastWord is the outcome of an operation that has been ended: its own if it is there already, or comes within the grace.
func lastWord[T any](r *Runner, done <-chan outcome[T], ended func() error) outcome[T] {
	select {
	case o := <-done:
		return o
	default:
	}
	if r.o.Grace > 0 {
		timer := r.o.Clock.Timer(r.o.Grace)
		defer timer.Stop()
		select {
		case o := <-done:
			return o
		case <-timer.C:
		case <-r.life.Done():
		}
	}
	return outcome[T]{err: ended()}
}

// attempt is an operation on a database that is fit.
func attempt[T any](ctx context.Context, r *Runner, fitness *Fitness, do func(ctx context.Context) (T, error)) (T, error) {
	var none T
	if fitness != nil {
		Unsent(ctx)
		err := fitness.Ensure(ctx)
		if err == nil {
			err = Send(ctx)
		}
		if err != nil {
			return none, NotStored(err)
		}
	}
	value, err := do(ctx)
	if err != nil && fitness != nil && ctx.Err() == nil && !r.mean(err).Sound {
		fitness.Doubt()
	}
	return value, err
}

// visit is an operation that may outlast its caller. The Runner's mu guards it.
type visit struct {
	over, abandoned bool
	timer           *clock.Timer // ends it at last
}

// over notes that an operation has ended.
func (r *Runner) over(v *visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v.over = true
	r.running--
	if v.timer != nil {
		v.timer.Stop()
	}
	if v.abandoned {
		r.abandoned--
		close(r.fewer)
		r.fewer = make(chan struct{})
	}
}

// abandon notes that the caller of an operation has gone, and ends it unless it may linger.
func (r *Runner) abandon(v *visit, leave, cancel context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.over {
		return
	}
	v.abandoned = true
	r.abandoned++
	leave()
	linger := time.Duration(0)
	if r.o.Linger != nil && !r.closed.Load() {
		linger = r.o.Linger()
	}
	if linger > 0 {
		v.timer = r.o.Clock.AfterFunc(linger, cancel)
	} else {
		cancel()
	}
}

// goneKey is the context key of the context that ends when the caller of an operation has gone.
type goneKey struct{}

// Gone is a context that ends when the caller of the operation that Run performs has gone, or the operation is over, while its
// own context may go on for RunnerOptions.Linger.
func Gone(ctx context.Context) context.Context {
	if gone, ok := ctx.Value(goneKey{}).(context.Context); ok {
		return gone
	}
	return ctx
}

// Open is the error of an operation that may not begin, because the ledger is closed or ctx is over; else nil.
func (r *Runner) Open(ctx context.Context) error {
	if r.closed.Load() {
		return store.ErrClosed
	}
	return fault.Ended(ctx)
}

// begin notes an operation, for which Close waits. It waits while too many go on whose callers have gone.
func (r *Runner) begin(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if err := r.Open(ctx); err != nil {
			return err
		}
		if r.abandoned < mostAbandoned {
			break
		}
		if err := r.await(ctx, r.fewer); err != nil {
			return err
		}
	}
	r.calls.Add(1)
	r.running++
	return nil
}

// Running is the number of operations in progress.
func (r *Runner) Running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// await waits until there are fewer operations whose callers have gone. The caller holds mu, which is released meanwhile.
func (r *Runner) await(ctx context.Context, fewer <-chan struct{}) error {
	n := r.abandoned
	r.mu.Unlock()
	defer r.mu.Lock()
	select {
	case <-fewer:
		return nil
	case <-r.life.Done():
		return store.ErrClosed
	case <-ctx.Done():
	}
	text := fmt.Sprintf("%d earlier operations have not been answered", n)
	if r.o.Waits != nil {
		if waits := r.o.Waits(); waits != "" {
			text += ": " + waits
		}
	}
	return fmt.Errorf("%w: %s", fault.Ended(ctx), text)
}

// Close ends the operations in progress, and lets later ones fail with store.ErrClosed. Then, when the
// operations have noticed, it calls release, which closes the driver's client. It waits for all that until ctx
// ends; the rest happens in the background. A second Close does nothing.
func (r *Runner) Close(ctx context.Context, release func() error) error {
	r.mu.Lock()
	closed := r.closed.Swap(true)
	r.mu.Unlock()
	if closed {
		return nil
	}
	r.end()
	done := make(chan error, 1)
	go func() {
		r.calls.Wait()
		done <- release()
	}()
	select {
	case err := <-done:
		return r.Failed(ctx, "close", "", err)
	case <-ctx.Done():
		return r.Failed(ctx, "close", "", fault.Ended(ctx))
	}
}

// Life is a context that ends with Close, for what isn't part of an operation: connections, and what a driver asks by itself.
func (r *Runner) Life() context.Context { return r.life }

// Closed reports whether Close was called.
func (r *Runner) Closed() bool { return r.closed.Load() }

// Invalid is the error of an operation that was not begun, because of what it was given.
func (r *Runner) Invalid(op string, err error) error { return fault.Of(r.o.Store, op, "", err) }

// Failed is the error of an operation on a key, which may be empty, that a store performs without Run; nil if err is.
func (r *Runner) Failed(ctx context.Context, op, key string, err error) error {
	if err == nil {
		return nil
	}
	return fault.Of(r.o.Store, op, key, r.show(ctx, err, key))
}
