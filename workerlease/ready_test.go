package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// checked is a ledger in memory whose check of the rights answers by the time.
type checked struct {
	store.Ledger
	asked  int
	answer func(ctx context.Context, at time.Duration) error
}

func newChecked(answer func(ctx context.Context, at time.Duration) error) *checked {
	return &checked{Ledger: memory.New(memory.Options{}), answer: answer}
}

func (c *checked) Describe() store.Description { return store.Description{CheckRights: c.checkRights} }

func (c *checked) checkRights(ctx context.Context) error {
	c.asked++
	return c.answer(ctx, since(time.Now()))
}

// always is an answer.
func always(err error) func(context.Context, time.Duration) error {
	return func(context.Context, time.Duration) error { return err }
}

// silent doesn't answer before a time, and then with err.
func silent(until time.Duration, err error) func(context.Context, time.Duration) error {
	return func(ctx context.Context, at time.Duration) error {
		if at >= until {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// starts are the ways in which a program begins. Each returns at once if the worker has started.
var starts = map[string]func(ctx context.Context, c *workerlease.Client) error{
	"Ready": func(ctx context.Context, c *workerlease.Client) error { return c.Ready(ctx) },
	"StartLeasing": func(ctx context.Context, c *workerlease.Client) error {
		_, err := c.StartLeasing(ctx, named("a", 0), workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}})
		return err
	},
	"StartTask": func(ctx context.Context, c *workerlease.Client) error {
		_, err := c.StartTask(ctx, named("a", 0), func(context.Context, workerlease.Lease) error { return nil })
		return err
	},
	"TryClaim": func(ctx context.Context, c *workerlease.Client) error {
		claim, err := c.TryClaim(ctx, named("a", 0))
		if err != nil {
			return err
		}
		return claim.Release(ctx)
	},
	"Run": func(ctx context.Context, c *workerlease.Client) error {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		return c.Run(ctx, named("a", 0), func(context.Context, workerlease.Lease) error { return nil })
	},
}

// errFinal is a denial of which the store knows that it lasts.
var errFinal = fmt.Errorf("%w: the user lacks INSERT (%w)", store.ErrDenied, store.ErrFinal)

func TestAStartSaysWhatKeepsWorkersFromTheStore(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		after  time.Duration
		remedy string
	}{
		"not initialised": {store.ErrMissing, 0, "call the ledger's Init, which is safe to repeat, or run leasectl init"},
		"closed":          {store.ErrClosed, 0, "ledger is closed"},
		"invalid":         {store.ErrInvalid, 0, "invalid record"},
		"denied":          {store.ErrDenied, 10 * time.Second, "leasectl doctor shows which are missing"},
		"refused":         {store.ErrRefused, 10 * time.Second, "store refused"},
		"denied for good": {errFinal, 0, "leasectl doctor shows which are missing"},
	} {
		for how, begin := range starts {
			bubble(t, name+", "+how, func(t *testing.T) {
				client := workerlease.NewClient(newChecked(always(fmt.Errorf("now: %w", c.err))), workerlease.ClientOptions{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := begin(ctx, client)
				if took := since(time.Now()); !errors.Is(err, c.err) || took != c.after {
					t.Errorf("%s = %v after %v, want %v after %v", how, err, took, c.err, c.after)
				}
				if err != nil && (!strings.HasSuffix(err.Error(), c.remedy) && !strings.Contains(err.Error(), c.remedy+",") || strings.Contains(err.Error(), "\n")) {
					t.Errorf("%s = %v, want one line with %q", how, err, c.remedy)
				}
			})
		}
	}
}

func TestAStoreThatDeniesForAMomentEndsNoStart(t *testing.T) {
	for how, begin := range starts {
		bubble(t, how, func(t *testing.T) {
			told := &worker{}
			l := newChecked(func(_ context.Context, at time.Duration) error {
				if at < 9*time.Second {
					return store.ErrDenied // as while the servers elect a primary
				}
				return nil
			})
			client := workerlease.NewClient(l, workerlease.ClientOptions{Observer: told})
			ctx, cancel := context.WithCancel(t.Context())
			defer func() { cancel(); time.Sleep(time.Minute) }()
			if err := begin(ctx, client); err != nil {
				t.Errorf("%s = %v, want nil", how, err)
			}
			if want := map[bool]int{true: 0, false: 1}[how == "Ready"]; len(observed[event.StoreFailed](told)) != want {
				t.Errorf("%s told %+v, want %d times that it is denied", how, told.events, want)
			}
		})
	}
}

func TestAStoreThatDoesNotAnswerDelaysAStartOnce(t *testing.T) {
	for _, how := range []string{"StartLeasing", "StartTask"} {
		bubble(t, how, func(t *testing.T) {
			client := workerlease.NewClient(newChecked(silent(time.Hour, nil)), workerlease.ClientOptions{})
			ctx, cancel := context.WithCancel(t.Context())
			defer func() { cancel(); time.Sleep(time.Minute) }()
			for range 3 {
				if err := starts[how](ctx, client); err != nil || since(time.Now()) != 5*time.Second {
					t.Errorf("%s = %v after %v, want a worker after 5s, whose client asks once", how, err, since(time.Now()))
				}
			}
			if err := client.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) || since(time.Now()) != 10*time.Second {
				t.Errorf("Ready() of a silent store = %v after %v, want the deadline's error after 5s", err, since(time.Now()))
			}
		})
	}
}

func TestAStartThatIsCancelledWaitsForNoStore(t *testing.T) {
	for _, how := range []string{"StartLeasing", "StartTask", "Run"} {
		bubble(t, how, func(t *testing.T) {
			client := workerlease.NewClient(newChecked(always(store.ErrDenied)), workerlease.ClientOptions{})
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			if err := starts[how](ctx, client); err != nil || since(time.Now()) != 2500*time.Millisecond {
				t.Errorf("%s = %v after %v, want nil when its context ends", how, err, since(time.Now()))
			}
			time.Sleep(time.Minute)
		})
	}
}

func TestRunEndsIfTheFirstAnswerOfTheStoreIsThatItIsNotInitialised(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		client := workerlease.NewClient(newChecked(silent(20*time.Minute, store.ErrMissing)), workerlease.ClientOptions{})
		err := starts["Run"](t.Context(), client)
		if at := since(time.Now()); !errors.Is(err, store.ErrMissing) || !strings.HasPrefix(err.Error(), `run "job": `) || at < 20*time.Minute || at > 21*time.Minute {
			t.Errorf("Run() = %v after %v, want ErrMissing soon after the store has answered at 20m", err, at)
		}
	})
}

func TestRunGoesOnIfTheStoreAnswersLate(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := newChecked(silent(20*time.Minute, nil))
		if err := starts["Run"](t.Context(), workerlease.NewClient(l, workerlease.ClientOptions{})); err != nil || since(time.Now()) < time.Hour {
			t.Errorf("Run() = %v after %v, want nil after 1h", err, since(time.Now()))
		}
		if l.asked > 50 {
			t.Errorf("it was asked %d times, want once in 30s, and not again", l.asked)
		}
	})
}

func TestALedgerInMemoryIsAskedNothingMore(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var first event.Event
		w := start(t, setup{Options: named("a", 0), observe: func(e event.Event) {
			if o, ok := e.(event.Operated); ok && first == nil {
				first = o
			}
		}})
		at(time.Second)
		if o, ok := first.(event.Operated); !ok || o.Operation != "now" || w.Status().StoreTime.IsZero() {
			t.Errorf("the first operation was %+v, want the time, by the worker", first)
		}
	})
}
