package supervise

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// checked is a ledger that denies the first checks of the rights.
type checked struct {
	store.Ledger

	denials, checks int
}

func (c *checked) Describe() store.Description { return store.Description{CheckRights: c.checkRights} }

func (c *checked) checkRights(context.Context) error {
	if c.checks++; c.checks <= c.denials {
		return fmt.Errorf("%w: insert", store.ErrDenied)
	}
	return nil
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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

// silent is a ledger that doesn't answer at first.
type silent struct {
	*checked

	until time.Time
}

func (s silent) Now(ctx context.Context) (store.Stamp, error) {
	select {
	case <-time.After(time.Until(s.until)):
		return s.checked.Now(ctx)
	case <-ctx.Done():
		return store.Stamp{}, ctx.Err()
	}
}

// So does a server that starts.
func TestADenialThatFollowsSilenceEndsARunOnlyIfItLasts(t *testing.T) {
	for denials, want := range map[int]error{5: nil, 99: store.ErrDenied} {
		synctest.Test(t, func(t *testing.T) {
			l := silent{&checked{Ledger: memory.New(memory.Options{}), denials: denials}, time.Now().Add(3 * time.Second)}
			var reports []error
			err := askLedger(t.Context(), l, func(err error) { reports = append(reports, err) })
			if !errors.Is(err, want) {
				t.Errorf("askLedger() after %d denials = %v, want %v", denials, err, want)
			}
			if len(reports) != 2 || !errors.Is(reports[0], context.DeadlineExceeded) || !errors.Is(reports[1], store.ErrDenied) {
				t.Errorf("reports: %v, want that it was silent, and the denial", reports)
			}
		})
	}
}

// A file that isn't there yet is created by the first operation, and nothing is wrong with it.
func TestALedgerThatIsYetToBeCreatedEndsNoRun(t *testing.T) {
	l, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "leases.db")})
	must(t, err)
	defer func() { _ = l.Close(t.Context()) }()
	if err := askLedger(t.Context(), l, func(err error) { t.Errorf("reported: %v", err) }); err != nil {
		t.Errorf("askLedger() = %v, want nil", err)
	}
}

func TestADenialThatIsFinalEndsARunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		final := fmt.Errorf("%w: the user lacks INSERT (%w)", store.ErrDenied, store.ErrFinal)
		l := describedAs{memory.New(memory.Options{}), store.Description{CheckRights: func(context.Context) error { return final }}}
		began := time.Now()
		err := askLedger(t.Context(), l, func(err error) { t.Errorf("reported: %v, want that it is the run's error alone", err) })
		if took := time.Since(began); !errors.Is(err, final) || took > 0 {
			t.Errorf("askLedger() = %v after %v, want the denial at once", err, took)
		}
	})
}

// describedAs is a ledger that describes itself otherwise.
type describedAs struct {
	store.Ledger

	as store.Description
}

func (d describedAs) Describe() store.Description { return d.as }

func TestAppendsThatAreDeniedEndARunAndDoubtsDoNot(t *testing.T) {
	denied := fmt.Errorf("%w: insert (%w)", store.ErrDenied, store.ErrNotStored)
	refused := fmt.Errorf("%w: a replica (%w)", store.ErrRefused, store.ErrNotStored)
	failed := func(op string, err error) event.Event {
		return event.StoreFailed{Operation: op, Err: err}
	}
	for name, c := range map[string]struct {
		events []event.Event
		apart  time.Duration
		ends   bool
	}{
		"three in a row":             {[]event.Event{failed("append", denied), failed("append", denied), failed("append", denied)}, refusalLasts / 2, true},
		"three in an election":       {[]event.Event{failed("append", denied), failed("append", denied), failed("append", denied)}, refusalLasts / 5, false},
		"three at once":              {[]event.Event{failed("append", denied), failed("append", denied), failed("append", denied)}, 0, false},
		"two":                        {[]event.Event{failed("append", denied), failed("append", denied)}, time.Second, false},
		"three, a success between":   {[]event.Event{failed("append", denied), failed("append", denied), event.Claimed{}, failed("append", denied)}, time.Second, false},
		"reads, as in an election":   {[]event.Event{failed("tail", store.ErrDenied), failed("tail", store.ErrDenied), failed("now", store.ErrDenied), failed("now", store.ErrDenied)}, time.Second, false},
		"appends of unknown outcome": {[]event.Event{event.Unknown{Err: store.ErrDenied}, event.Unknown{Err: store.ErrDenied}, event.Unknown{Err: store.ErrDenied}}, time.Second, false},
		"appends that were refused":  {[]event.Event{event.Unknown{Err: store.ErrRefused}, event.Unknown{Err: store.ErrRefused}, event.Unknown{Err: store.ErrRefused}}, refusalLasts / 2, true},
		"refused for a moment":       {[]event.Event{failed("append", refused), failed("append", refused), failed("append", refused)}, refusalLasts / 5, false},
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
	denied := event.StoreFailed{Operation: "append", Err: fmt.Errorf("%w: insert (%w)", store.ErrDenied, store.ErrNotStored)}
	for denials, want := range map[int]error{0: nil, 3: nil, 1000: store.ErrDenied} {
		synctest.Test(t, func(t *testing.T) {
			l := &checked{Ledger: memory.New(memory.Options{}), denials: denials}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := newRefusals()
			unfit := r.unfit(ctx, l)
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
	denied := event.StoreFailed{Operation: "append", Err: fmt.Errorf("%w: insert (%w)", store.ErrDenied, store.ErrNotStored)}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := newRefusals()
		unfit := r.unfit(ctx, &checked{Ledger: memory.New(memory.Options{})})
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
				unfit := r.unfit(ctx, l)
				_, _, err := l.Tail(ctx, "job", 1)
				r.observe(event.StoreFailed{Worker: event.Worker{WorkerType: "job"}, Operation: "tail", Err: err})
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

func TestALedgerThatComparesTheRecordBelowIsPassedOn(t *testing.T) {
	m := memory.New(memory.Options{})
	if store.AsFollower(breakingOff(m, t.Context())) == nil {
		t.Error("a Follower is hidden: workers would read before each extension")
	}
	if store.AsFollower(breakingOff(struct{ store.Ledger }{m}, t.Context())) != nil {
		t.Error("a Follower shows where none is")
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
			if err := call(t.Context(), breakingOff(m, end)); err != nil {
				t.Errorf("%s = %v, want nil", name, err)
			}
			if all, err := m.Presences(t.Context(), "job"); err != nil || (len(all) == 1) != (name == "Attend") {
				t.Errorf("%s left %+v, %v", name, all, err)
			}
			if err := call(t.Context(), breakingOff(struct{ store.Ledger }{m}, end)); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s of a ledger without a roster = %v, want errors.ErrUnsupported", name, err)
			}
			began := time.Now()
			time.AfterFunc(time.Second, stop)
			if err := call(t.Context(), breakingOff(asleep{m}, end)); !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
				t.Errorf("%s that hangs = %v after %v, want it broken off by the stop", name, err, time.Since(began))
			}
			if err := call(t.Context(), breakingOff(m, end)); err != nil {
				t.Errorf("%s after the stop = %v, want nil", name, err)
			}
		})
	}
}

// paced is a ledger that knows the time poorly.
type paced struct{ store.Ledger }

func (paced) Describe() store.Description { return store.Description{FailoverFloor: 9 * time.Second} }

// What a worker asks a ledger, besides its operations, it asks through the one that breaks off reads.
func TestAWorkerRefusesSlotsThatAreTooShortForTheClockOfItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, o := range []workerlease.Options{
			{WorkerType: "job", LeaseInterval: 2 * time.Second},
			{WorkerType: "job", LeaseInterval: time.Minute, FailoverWithin: 5 * time.Second},
		} {
			client := workerlease.NewClient(breakingOff(paced{memory.New(memory.Options{})}, t.Context()), workerlease.ClientOptions{})
			if _, err := client.TryClaim(t.Context(), o); !errors.Is(err, workerlease.ErrOptions) {
				t.Errorf("TryClaim() with slots of %v and FailoverWithin %v = %v, want ErrOptions", o.LeaseInterval, o.FailoverWithin, err)
			}
		}
	})
}
