package supervise

import (
	"context"
	"errors"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/around"
	"github.com/slotlease/slotlease/store"
)

// preflight bounds how long Run looks for an error against which waiting can't help,
// and firstLook how long it is silent about a store that doesn't answer. Leasing begins
// meanwhile. A denial counts if it lasts for refusalLasts: a server whose users can't be
// looked up for a moment, as in an election, denies a login, too; but store.ErrFinal counts at once.
const (
	preflight = 5 * time.Second
	firstLook = 2 * time.Second
)

// askLedger asks a ledger what a worker will ask, and reports what fails. It
// returns an error only if waiting can't help against it.
func askLedger(ctx context.Context, l store.Ledger, report func(error)) error {
	ask := func(ctx context.Context) error {
		_, err := l.Now(ctx) // It may create the ledger, as an operation of a worker does.
		if err == nil {
			_, err = l.WorkerTypes(ctx)
		}
		if check := store.Describe(l).CheckRights; check != nil && (err == nil || errors.Is(err, store.ErrDenied)) {
			// It knows best whether a denial lasts.
			if lacks := check(ctx); lacks != nil {
				return lacks
			}
		}
		return err
	}
	for _, limit := range []time.Duration{firstLook, preflight - firstLook} {
		limited, cancel := context.WithTimeout(ctx, limit)
		err := ask(limited)
		cancel()
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case errors.Is(err, store.ErrDenied) && !errors.Is(err, store.ErrFinal):
			report(err)
			return lasts(ctx, ask)
		case advice.Lasting(err):
			return err
		}
		report(err)
	}
	return nil
}

// readsUntil is a ledger whose reads, and changes of its roster, are broken off when a context ends, so that
// stopping doesn't wait for a store that is down. Reads that begin later go on: a
// release needs them. So do appends: the outcome of one that was broken off would have
// to be read back.
type readsUntil struct{ around.Ledger }

func breakingOff(l store.Ledger, end context.Context) readsUntil {
	return readsUntil{around.Ledger{Ledger: l, Do: func(ctx context.Context, _ string) (context.Context, func()) {
		if end.Err() != nil {
			return ctx, func() {}
		}
		ctx, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(end, cancel)
		return ctx, func() { stop(); cancel() }
	}}}
}

// Describe says what its worker is to know. That the ledger can be used has been asked by then.
func (r readsUntil) Describe() store.Description {
	d := store.Describe(r.Ledger.Ledger)
	return store.Description{FailoverFloor: d.FailoverFloor, Warning: d.Warning, Note: d.Note}
}
