package supervise

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/event"
)

const (
	// refusalLasts is how long a ledger refuses or denies reads or appends, or isn't there, before it
	// counts as unfit: a backup may make it refuse them for a moment, by a second link to
	// its file, and an election may make it deny them.
	refusalLasts = advice.Patience
	// refusedAppends is how many appends in a row a ledger refuses or denies before it counts as
	// unfit. It may still be read, as where others have added a constraint to a table, or have
	// taken away the right to write.
	refusedAppends = 3
	// doubtLasts is how long a check of the rights that finds nothing denied is trusted more than
	// the appends. If refusedAppends of them are denied again within it, the check doesn't show why,
	// and the run ends.
	doubtLasts = 5 * time.Minute
)

// refusals watches whether a ledger that was fit refuses to be used, by what happens to all its workers.
type refusals struct {
	granted atomic.Bool // The rights are there: those that were denied don't count.
	reads   chan string // has a worker type if a read was barred, which it was for
	lasting chan error  // has why appends are refused

	mu      sync.Mutex
	appends int       // refused in a row
	since   time.Time // when the first of them was
}

func newRefusals() *refusals {
	return &refusals{reads: make(chan string, 1), lasting: make(chan error, 1)}
}

// observe takes note of an event.
func (r *refusals) observe(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := e.(type) {
	case event.Claimed, event.Extended, event.Released, event.SlotDone:
		r.appends = 0
	case event.Unknown:
		if errors.Is(e.Err, store.ErrRefused) {
			r.append(e.Err)
		}
	case event.StoreFailed:
		switch {
		case errors.Is(e.Err, store.ErrNotStored) && barred(e.Err):
			r.append(e.Err)
		case barred(e.Err):
			keep(r.reads, e.WorkerType)
		}
	}
}

// barred reports whether a ledger refuses or denies an operation, or was removed.
func barred(err error) bool { return advice.Lasting(err) }

// append counts an append that was refused. The caller holds mu.
func (r *refusals) append(err error) {
	if r.granted.Swap(false) {
		r.appends = 0
	}
	if r.appends++; r.appends == 1 {
		r.since = time.Now()
	}
	if r.appends >= refusedAppends && time.Since(r.since) >= refusalLasts {
		keep(r.lasting, err)
	}
}

func keep[T any](to chan T, news T) {
	select {
	case to <- news:
	default:
	}
}

// unfit returns a channel that gets an error once a ledger proves unfit. It gets nothing while the ledger is fit.
func (r *refusals) unfit(ctx context.Context, l store.Ledger) <-chan error {
	unfit := make(chan error, 1)
	go func() {
		var doubted time.Time
		for {
			select {
			case <-ctx.Done():
				return
			case err := <-r.lasting:
				if time.Since(doubted) < doubtLasts || !granted(ctx, l, err) {
					unfit <- err
					return
				}
				doubted = time.Now()
				r.granted.Store(true)
				select {
				case <-r.lasting: //nolint:errcheck // It came meanwhile, and says the same.
				default:
				}
			case workerType := <-r.reads:
				if err := refusing(ctx, l, workerType); err != nil {
					unfit <- err
					return
				}
			}
		}
	}()
	return unfit
}

// granted reports whether appends that were denied with an error may be granted by now: the denials may be
// weeks apart if another worker has all slots. Only a ledger that can check the rights shows it.
func granted(ctx context.Context, l store.Ledger, denied error) bool {
	check := store.Describe(l).CheckRights
	if check == nil || errors.Is(denied, store.ErrRefused) {
		return false
	}
	return lasts(ctx, check) == nil
}

// refusing checks whether a ledger keeps refusing or denying reads, or stays away, and returns the last
// error if so. It reads both the time and the records, because a store may show the time to a user
// without the right to read the records.
func refusing(ctx context.Context, l store.Ledger, workerType string) error {
	return lasts(ctx, func(ctx context.Context) error {
		_, err := l.Now(ctx)
		if err == nil {
			_, _, err = l.Tail(ctx, workerType, 1)
		}
		return err
	})
}

// lasts asks a ledger again and again, and returns the last error if it is barred all the time.
func lasts(ctx context.Context, ask func(context.Context) error) error {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for began := time.Now(); ; {
		limited, cancel := context.WithTimeout(ctx, refusalLasts)
		err := ask(limited)
		cancel()
		switch {
		case !barred(err):
			return nil
		case time.Since(began) >= refusalLasts:
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
}
