package supervise

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// checked is a ledger that denies the first checks of the rights.
type checked struct {
	store.Ledger

	denials, checks int
}

func (c *checked) CheckRights(context.Context) error {
	if c.checks++; c.checks <= c.denials {
		return fmt.Errorf("%w: insert", store.ErrDenied)
	}
	return nil
}

func TestADenialEndsARunOnlyIfItLasts(t *testing.T) {
	for denials, want := range map[int]error{0: nil, 1: nil, 9: nil, 99: store.ErrDenied} {
		synctest.Test(t, func(t *testing.T) {
			l := &checked{Ledger: memory.New(memory.Options{}), denials: denials}
			began, reports := time.Now(), 0
			report := func(err error) {
				if reports++; !errors.Is(err, store.ErrDenied) || time.Since(began) > 0 {
					t.Errorf("reported after %v: %v, want the denial at once", time.Since(began), err)
				}
			}
			if err := askLedger(t.Context(), l, report); !errors.Is(err, want) {
				t.Errorf("askLedger() after %d denials = %v, want %v", denials, err, want)
			}
			if want := min(denials, 1); reports != want {
				t.Errorf("%d reports of %d denials, want %d", reports, denials, want)
			}
			if took := time.Since(began); want != nil && took != refusalLasts {
				t.Errorf("askLedger() took %v to give up, want %v", took, refusalLasts)
			}
		})
	}
}

func TestAppendsThatAreDeniedEndARunAndDoubtsDoNot(t *testing.T) {
	denied := fmt.Errorf("%w: insert (%w)", store.ErrDenied, store.ErrNotStored)
	failed := func(op string, err error) workerlease.Event {
		return workerlease.StoreFailed{Operation: op, Err: err}
	}
	for name, c := range map[string]struct {
		events []workerlease.Event
		apart  time.Duration
		ends   bool
	}{
		"three in a row":             {[]workerlease.Event{failed("append", denied), failed("append", denied), failed("append", denied)}, refusalLasts / 2, true},
		"three in an election":       {[]workerlease.Event{failed("append", denied), failed("append", denied), failed("append", denied)}, refusalLasts / 5, false},
		"three at once":              {[]workerlease.Event{failed("append", denied), failed("append", denied), failed("append", denied)}, 0, false},
		"two":                        {[]workerlease.Event{failed("append", denied), failed("append", denied)}, time.Second, false},
		"three, a success between":   {[]workerlease.Event{failed("append", denied), failed("append", denied), workerlease.Claimed{}, failed("append", denied)}, time.Second, false},
		"reads, as in an election":   {[]workerlease.Event{failed("tail", store.ErrDenied), failed("tail", store.ErrDenied), failed("now", store.ErrDenied), failed("now", store.ErrDenied)}, time.Second, false},
		"appends of unknown outcome": {[]workerlease.Event{workerlease.Unknown{Err: store.ErrDenied}, workerlease.Unknown{Err: store.ErrDenied}, workerlease.Unknown{Err: store.ErrDenied}}, time.Second, false},
		"appends that were refused":  {[]workerlease.Event{workerlease.Unknown{Err: store.ErrRefused}, workerlease.Unknown{Err: store.ErrRefused}, workerlease.Unknown{Err: store.ErrRefused}}, time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRefusals()
			for _, e := range c.events {
				r.observe(e)
				time.Sleep(c.apart)
			}
			if got := len(r.lasting) > 0; got != c.ends {
				t.Errorf("%s: ends the run: %v, want %v", name, got, c.ends)
			}
		})
	}
}

// Of two denials weeks ago nothing is left when the rights were granted since, also if an election denies
// one more.
func TestAppendsThatWereDeniedEndARunOnlyIfTheRightsAreStillMissing(t *testing.T) {
	denied := workerlease.StoreFailed{Operation: "append", Err: fmt.Errorf("%w: insert (%w)", store.ErrDenied, store.ErrNotStored)}
	for denials, want := range map[int]error{0: nil, 3: nil, 1000: store.ErrDenied} {
		synctest.Test(t, func(t *testing.T) {
			l := &checked{Ledger: memory.New(memory.Options{}), denials: denials}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := newRefusals()
			unfit := r.unfit(ctx, l, "job")
			for _, after := range []time.Duration{0, time.Second, 21 * 24 * time.Hour, time.Minute, time.Second} {
				time.Sleep(after)
				r.observe(denied)
			}
			time.Sleep(time.Minute)
			var got error
			select {
			case got = <-unfit:
			default:
			}
			if !errors.Is(got, want) {
				t.Errorf("unfit after %d denied checks: %v, want %v", denials, got, want)
			}
		})
	}
}

// The check may not show what is denied. Denials that go on then end the run.
func TestAppendsThatAreDeniedOnAndOnEndARunWhateverTheCheckSays(t *testing.T) {
	denied := workerlease.StoreFailed{Operation: "append", Err: fmt.Errorf("%w: insert (%w)", store.ErrDenied, store.ErrNotStored)}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := newRefusals()
		unfit := r.unfit(ctx, &checked{Ledger: memory.New(memory.Options{})}, "job")
		for range 10 {
			r.observe(denied)
			time.Sleep(refusalLasts / 2)
		}
		select {
		case err := <-unfit:
			if !errors.Is(err, store.ErrDenied) {
				t.Errorf("unfit: %v, want %v", err, store.ErrDenied)
			}
		default:
			t.Error("the run goes on, want its end")
		}
	})
}

// unreadable is a ledger that answers with its time, but fails every read of records for a while.
type unreadable struct {
	store.Ledger

	why   error
	until time.Time
}

func (u unreadable) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if time.Now().Before(u.until) {
		return nil, store.Stamp{}, fmt.Errorf("tail: %w", u.why)
	}
	return u.Ledger.Tail(ctx, workerType, limit)
}

func TestReadsThatAreDeniedOrFindNoLedgerEndARunIfThatLasts(t *testing.T) {
	for _, why := range []error{store.ErrDenied, store.ErrRefused, store.ErrMissing} {
		for lasts, want := range map[time.Duration]error{refusalLasts / 2: nil, time.Hour: why} {
			synctest.Test(t, func(t *testing.T) {
				l := unreadable{memory.New(memory.Options{}), why, time.Now().Add(lasts)}
				ctx, cancel := context.WithTimeout(t.Context(), 2*refusalLasts)
				defer cancel()
				r := newRefusals()
				unfit := r.unfit(ctx, l, "job")
				_, _, err := l.Tail(ctx, "job", 1)
				r.observe(workerlease.StoreFailed{Operation: "tail", Err: err})
				var got error
				select {
				case got = <-unfit:
				case <-ctx.Done():
				}
				if !errors.Is(got, want) {
					t.Errorf("reads that fail with %v for %v: %v, want %v", why, lasts, got, want)
				}
			})
		}
	}
}

// asleep is a ledger whose roster never answers.
type asleep struct{ *memory.Ledger }

func (asleep) Attend(ctx context.Context, _ []store.Presence) error {
	<-ctx.Done()
	return ctx.Err()
}

func (asleep) Leave(ctx context.Context, _ string, _ []string) error {
	<-ctx.Done()
	return ctx.Err()
}

func (asleep) Presences(ctx context.Context, _ string) ([]store.Presence, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestTheRosterOfALedgerIsPassedOnAndDoesNotHoldUpAStop(t *testing.T) {
	operations := map[string]func(ctx context.Context, r store.Roster) error{
		"Attend": func(ctx context.Context, r store.Roster) error {
			return r.Attend(ctx, []store.Presence{{WorkerType: "job", ID: "a", InstanceID: "w", Phase: store.PhaseHolder}})
		},
		"Leave":     func(ctx context.Context, r store.Roster) error { return r.Leave(ctx, "job", []string{"b"}) },
		"Presences": func(ctx context.Context, r store.Roster) error { _, err := r.Presences(ctx, "job"); return err },
	}
	for name, call := range operations {
		synctest.Test(t, func(t *testing.T) {
			end, stop := context.WithCancel(t.Context())
			m := memory.New(memory.Options{})
			if err := call(t.Context(), readsUntil{m, end}); err != nil {
				t.Errorf("%s = %v, want nil", name, err)
			}
			if all, err := m.Presences(t.Context(), "job"); err != nil || (len(all) == 1) != (name == "Attend") {
				t.Errorf("%s left %+v, %v", name, all, err)
			}
			if err := call(t.Context(), readsUntil{struct{ store.Ledger }{m}, end}); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s of a ledger without a roster = %v, want errors.ErrUnsupported", name, err)
			}
			began := time.Now()
			time.AfterFunc(time.Second, stop)
			if err := call(t.Context(), readsUntil{asleep{m}, end}); !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
				t.Errorf("%s that hangs = %v after %v, want it broken off by the stop", name, err, time.Since(began))
			}
			if err := call(t.Context(), readsUntil{m, end}); err != nil {
				t.Errorf("%s after the stop = %v, want nil", name, err)
			}
		})
	}
}
