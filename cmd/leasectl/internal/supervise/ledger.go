package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/store"
)

// preflight bounds how long Run looks for an error against which waiting can't help,
// and firstLook how long it is silent about a store that doesn't answer. Leasing begins
// meanwhile. A denial counts if it lasts for refusalLasts: a server whose users can't be
// looked up for a moment, as in an election, denies a login, too.
const (
	preflight = 5 * time.Second
	firstLook = 2 * time.Second
)

// askLedger asks a ledger what a worker will ask, and reports the first failure. It
// returns an error only if waiting can't help against it.
func askLedger(ctx context.Context, l store.Ledger, report func(error)) error {
	ask := func(ctx context.Context) error {
		_, err := l.Now(ctx)
		if err == nil {
			_, err = l.WorkerTypes(ctx)
		}
		if c, ok := l.(store.RightsChecker); ok && err == nil {
			err = c.CheckRights(ctx)
		}
		return err
	}
	askFor := func(limit time.Duration) error {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return ask(limited)
	}
	err := askFor(firstLook)
	if errors.Is(err, store.ErrDenied) {
		report(err)
		return lasts(ctx, ask)
	}
	if err != nil && !advice.Lasting(err) && ctx.Err() == nil {
		report(err)
		err = askFor(preflight - firstLook)
	}
	if advice.Lasting(err) {
		return err
	}
	return nil
}

// readsUntil is a ledger whose reads, and changes of its roster, are broken off when a context ends, so that
// stopping doesn't wait for a store that is down. Reads that begin later go on: a
// release needs them. So do appends: the outcome of one that was broken off would have
// to be read back.
type readsUntil struct {
	store.Ledger

	end context.Context
}

// Warning is that of the ledger.
func (r readsUntil) Warning() string {
	if l, ok := r.Ledger.(store.Warner); ok {
		return l.Warning()
	}
	return ""
}

// Note returns the note of the ledger.
func (r readsUntil) Note() string {
	if l, ok := r.Ledger.(store.Noter); ok {
		return l.Note()
	}
	return ""
}

// Watch passes on the hints of the ledger, if it gives any.
func (r readsUntil) Watch(ctx context.Context, changed func(workerType string)) error {
	if l, ok := r.Ledger.(store.Watcher); ok {
		return l.Watch(ctx, changed)
	}
	return fmt.Errorf("watch: %w", errors.ErrUnsupported)
}

// roster is that of the ledger, if it keeps one.
func (r readsUntil) roster() (store.Roster, error) {
	if l, ok := r.Ledger.(store.Roster); ok {
		return l, nil
	}
	return nil, fmt.Errorf("roster: %w", errors.ErrUnsupported)
}

// Attend is broken off like a read: the roster may lose what it keeps.
func (r readsUntil) Attend(ctx context.Context, presences []store.Presence) error {
	l, err := r.roster()
	if err != nil {
		return err
	}
	ctx, done := r.until(ctx)
	defer done()
	return l.Attend(ctx, presences)
}

// Leave is broken off like a read.
func (r readsUntil) Leave(ctx context.Context, workerType string, ids []string) error {
	l, err := r.roster()
	if err != nil {
		return err
	}
	ctx, done := r.until(ctx)
	defer done()
	return l.Leave(ctx, workerType, ids)
}

// Presences is broken off like other reads.
func (r readsUntil) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	l, err := r.roster()
	if err != nil {
		return nil, err
	}
	ctx, done := r.until(ctx)
	defer done()
	return l.Presences(ctx, workerType)
}

// until is a context for one read.
func (r readsUntil) until(ctx context.Context) (context.Context, func()) {
	if r.end.Err() != nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(r.end, cancel)
	return ctx, func() { stop(); cancel() }
}

func (r readsUntil) Now(ctx context.Context) (store.Stamp, error) {
	ctx, done := r.until(ctx)
	defer done()
	return r.Ledger.Now(ctx)
}

func (r readsUntil) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	ctx, done := r.until(ctx)
	defer done()
	return r.Ledger.Get(ctx, workerType, seq)
}

func (r readsUntil) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	ctx, done := r.until(ctx)
	defer done()
	return r.Ledger.Tail(ctx, workerType, limit)
}
