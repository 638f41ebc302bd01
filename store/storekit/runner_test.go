package storekit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

// deaf is an operation that notices its context's end only after a while.
func deaf(d time.Duration) func(context.Context) (int, error) {
	return func(context.Context) (int, error) {
		time.Sleep(d)
		return 7, io.ErrUnexpectedEOF
	}
}

func TestAnOperationEndsWithItsContextWhateverTheDriverDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRunner(RunnerOptions{Store: "test"})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		_, err := Run(ctx, r, "get", "job:1", deaf(time.Hour))
		if took := time.Since(began); took != 2*time.Second || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrNotStored) {
			t.Errorf("an operation of a deaf driver ended after %v with %v, want after 2s with DeadlineExceeded, outcome unknown", took, err)
		}
		if want := "test: get job:1: context deadline exceeded"; err.Error() != want {
			t.Errorf("its error = %q, want %q", err, want)
		}
		// The driver is told that it is over, but no deadline.
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = Run(ctx, r, "get", "", func(inner context.Context) (int, error) {
			if _, dated := inner.Deadline(); dated {
				t.Error("the driver was given a deadline")
			}
			<-inner.Done()
			return 0, inner.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("an operation that was cancelled at its deadline = %v, want DeadlineExceeded, and not Canceled", err)
		}
		time.Sleep(time.Hour)
	})
}

func TestADriverMayHaveTheLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRunner(RunnerOptions{Store: "test", Grace: 300 * time.Millisecond, Meaning: func(err error) Meaning {
			return Meaning{TimedOut: errors.Is(err, os.ErrDeadlineExceeded)}
		}})
		for _, c := range []struct {
			name         string
			notices      time.Duration // after the deadline, or before
			says         error
			value        int
			took         time.Duration
			want         string
			wantDeadline bool
		}{
			{"that says what it waited for", 100 * time.Millisecond, errors.New("no primary: context deadline exceeded"), 0, 1100 * time.Millisecond, "test: get: no primary: context deadline exceeded", true},
			{"that says something else", time.Millisecond, io.EOF, 0, 1001 * time.Millisecond, "test: get: context deadline exceeded: EOF", true},
			{"that gives up a moment early", -time.Millisecond, os.ErrDeadlineExceeded, 0, 999 * time.Millisecond, "test: get: context deadline exceeded: i/o timeout", true},
			{"that succeeds", 100 * time.Millisecond, nil, 7, 1100 * time.Millisecond, "", false},
			{"that is deaf", time.Hour, io.EOF, 0, 1300 * time.Millisecond, "test: get: context deadline exceeded", true},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			got, err := Run(ctx, r, "get", "", func(inner context.Context) (int, error) {
				if _, dated := inner.Deadline(); !dated {
					t.Error("the driver wasn't given the deadline")
				}
				time.Sleep(time.Second + c.notices)
				return c.value, c.says
			})
			if took := time.Since(began); took != c.took || got != c.value || errors.Is(err, context.DeadlineExceeded) != c.wantDeadline || err != nil && err.Error() != c.want {
				t.Errorf("a driver %s = %d, %v after %v, want %d, %q after %v", c.name, got, err, took, c.value, c.want, c.took)
			}
		}
		// Close grants no grace.
		go func() {
			time.Sleep(time.Second)
			_ = r.Close(t.Context(), func() error { return nil })
		}()
		began := time.Now()
		_, err := Run(t.Context(), r, "get", "", deaf(time.Minute))
		if took := time.Since(began); took != time.Second || !errors.Is(err, store.ErrClosed) {
			t.Errorf("an operation that Close ends = %v after %v, want ErrClosed after 1s", err, took)
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestTheTextOfAnErrorIsTheStoresWhateverItMeans(t *testing.T) {
	r := NewRunner(RunnerOptions{Store: "test", Text: func(err error) string { return strings.ToUpper(err.Error()) }})
	_, err := Run(t.Context(), r, "get", "", func(context.Context) (int, error) { return 0, fmt.Errorf("%w: nothing at all", store.ErrMissing) })
	if want := "test: get: LEDGER NOT INITIALISED: NOTHING AT ALL"; err == nil || err.Error() != want || !errors.Is(err, store.ErrMissing) || store.Detail(err) != "ledger not initialised: nothing at all" {
		t.Errorf("an error with a sentinel = %v, detail %q, want %q, and its own text as the detail", err, store.Detail(err), want)
	}
}

func TestAnOperationThatIsEndedSaysWhatWentWrongBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var secrets Secrets
		secrets.Hide("c4naryS3cret")
		r := NewRunner(RunnerOptions{Store: "test", Secrets: secrets})
		inTrouble := func(ctx context.Context) (int, error) {
			Trouble(ctx, "500")
			Trouble(ctx, "503 by\nc4naryS3cret")
			return deaf(time.Hour)(ctx)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Run(ctx, r, "append", "job:1", inTrouble)
		if want := "test: append job:1: context deadline exceeded: 503 by ***"; err == nil || err.Error() != want || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrNotStored) {
			t.Errorf("an operation in trouble until its deadline = %v, want %q, outcome unknown", err, want)
		}
		go func() {
			time.Sleep(time.Second)
			_ = r.Close(t.Context(), func() error { return nil })
		}()
		_, err = Run(t.Context(), r, "append", "job:1", inTrouble)
		if want := "test: append job:1: ledger is closed: 503 by ***"; err == nil || err.Error() != want || !errors.Is(err, store.ErrClosed) {
			t.Errorf("an operation in trouble until Close = %v, want %q", err, want)
		}
		if r.Life().Err() == nil {
			t.Error("Life() goes on after Close")
		}
		time.Sleep(time.Hour) // Until the driver has noticed.
	})
	Trouble(t.Context(), "of no operation")
}

func TestWhatWasNotBegunIsNotStored(t *testing.T) {
	r := NewRunner(RunnerOptions{Store: "test"})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.EOF)
	never := func(context.Context) (int, error) { t.Error("it was begun"); return 0, nil }
	if _, err := Run(ctx, r, "append", "", never); !errors.Is(err, context.Canceled) || !errors.Is(err, io.EOF) || !errors.Is(err, store.ErrNotStored) {
		t.Errorf("an operation after the end of its context = %v, want Canceled with its cause, and ErrNotStored", err)
	}
	if err := r.Close(t.Context(), func() error { return nil }); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
	if _, err := Run(t.Context(), r, "append", "", never); !errors.Is(err, store.ErrClosed) || !errors.Is(err, store.ErrNotStored) {
		t.Errorf("an operation after Close = %v, want ErrClosed and ErrNotStored", err)
	}
}

// As by an errgroup, whose context ends with the error of the first that fails.
func TestTheFailureOfAnotherOperationIsNoOutcomeOfThisOne(t *testing.T) {
	for _, grace := range []time.Duration{0, time.Second} {
		for _, outcome := range []error{store.ErrConflict, store.ErrNotFound, store.ErrNotStored, store.ErrInvalid, store.ErrThrottled, store.ErrRefused, store.ErrDenied, store.ErrMissing, store.ErrClosed} {
			synctest.Test(t, func(t *testing.T) {
				r := NewRunner(RunnerOptions{Store: "test", Grace: grace})
				ctx, cancel := context.WithCancelCause(t.Context())
				another := fmt.Errorf("append job:2: %w", outcome)
				time.AfterFunc(time.Second, func() { cancel(another) })
				_, err := Run(ctx, r, "append", "job:1", func(ctx context.Context) (int, error) {
					<-ctx.Done() // It was sent, and may be stored.
					return 0, ctx.Err()
				})
				if !errors.Is(err, context.Canceled) || errors.Is(err, outcome) || !strings.Contains(err.Error(), another.Error()) {
					t.Errorf("an append that ended with another = %v, want Canceled and not %q, which is said", err, outcome)
				}
			})
		}
	}
}

func TestCloseEndsOperationsBeforeItReleasesTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRunner(RunnerOptions{Store: "test"})
		var busy atomic.Int32
		failed := make(chan error, 1)
		go func() {
			_, err := Run(t.Context(), r, "tail", "job", func(ctx context.Context) (int, error) {
				busy.Add(1)
				defer busy.Add(-1)
				<-ctx.Done()
				time.Sleep(time.Second) // It notices late.
				return 0, ctx.Err()
			})
			failed <- err
		}()
		synctest.Wait()
		released := false
		began := time.Now()
		err := r.Close(t.Context(), func() error {
			if released = true; busy.Load() != 0 {
				t.Error("the client was released while an operation used it")
			}
			return nil
		})
		if took := time.Since(began); err != nil || !released || took != time.Second {
			t.Errorf("Close() = %v after %v, want nil after 1s, when the operation had noticed", err, took)
		}
		if err := <-failed; !errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled) {
			t.Errorf("an operation during Close = %v, want ErrClosed", err)
		}
		if err := r.Close(t.Context(), func() error { t.Error("released twice"); return nil }); err != nil {
			t.Errorf("a second Close() = %v, want nil", err)
		}
	})
}

func TestCloseEndsWithItsContextAndReleasesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRunner(RunnerOptions{Store: "test"})
		go func() { _, _ = Run(t.Context(), r, "now", "", deaf(time.Minute)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var released atomic.Bool
		if err := r.Close(ctx, func() error { released.Store(true); return nil }); !errors.Is(err, context.DeadlineExceeded) || released.Load() {
			t.Errorf("Close() beside a deaf operation = %v, released %v, want DeadlineExceeded and not yet", err, released.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !released.Load() {
			t.Error("the client wasn't released when the operation had ended")
		}
	})
}

func TestErrorsHaveTheirMeaningAndNoSecret(t *testing.T) {
	var secrets Secrets
	secrets.Hide("c4naryS3cret")
	r := NewRunner(RunnerOptions{Store: "test", Secrets: secrets, Meaning: func(err error) Meaning {
		switch {
		case errors.Is(err, io.EOF):
			return Meaning{Is: store.ErrThrottled, NotStored: true, RetryAfter: time.Second}
		case errors.Is(err, io.ErrShortWrite):
			return Meaning{NotStored: true, Text: "it is full"}
		}
		return Meaning{}
	}})
	fail := func(err error) error {
		_, got := Run(t.Context(), r, "append", "job:7", func(context.Context) (int, error) { return 0, err })
		return got
	}
	err := fail(errors.Join(io.EOF, errors.New("\n at c4naryS3cret")))
	throttled, ok := errors.AsType[*store.ThrottledError](err)
	if !ok || throttled.RetryAfter != time.Second || !errors.Is(err, store.ErrNotStored) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "c4nary") {
		t.Errorf("a throttled append = %q, want one line, no secret, 1s and ErrNotStored", err)
	}
	if err := fail(io.ErrShortWrite); err.Error() != "test: append job:7: it is full" || store.Detail(err) != "short write" || !errors.Is(err, store.ErrNotStored) {
		t.Errorf("an error with a text of the store = %q, detail %q, want the text, and the driver's words as its detail", err, store.Detail(err))
	}
	if err := fail(io.ErrNoProgress); errors.Is(err, store.ErrNotStored) || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("an unknown error = %v, want that the outcome is unknown", err)
	}
	if err := fail(store.ErrConflict); !errors.Is(err, store.ErrConflict) || err.Error() != "test: append job:7: key exists" {
		t.Errorf("a conflict = %v, want ErrConflict", err)
	}
}

// A server goes on with statements whose clients have gone, so that a handle leaves no more than two there.
func TestOperationsWhoseCallersHaveGoneAreFewAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRunner(RunnerOptions{Store: "s", Linger: func() time.Duration { return time.Minute }, Waits: func() string { return "a lock is held by somebody" }})
		defer func() { must(t, "Close()", r.Close(context.WithoutCancel(t.Context()), func() error { return nil })) }()
		var begun atomic.Int32
		answered := make(chan struct{})
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := Run(ctx, r, "append", "k", func(ctx context.Context) (none struct{}, err error) {
				begun.Add(1)
				select {
				case <-answered:
				case <-ctx.Done():
				}
				if Gone(ctx).Err() == nil {
					t.Error("Gone() goes on although the caller has gone")
				}
				return none, ctx.Err()
			})
			return err
		}
		for i := range 3 {
			if err := call(); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "2 earlier operations have not been answered: a lock is held by somebody") != (i == 2) || errors.Is(err, store.ErrNotStored) != (i == 2) {
				t.Errorf("operation %d = %v, want a deadline, and the third not to be begun", i, err)
			}
		}
		if n := begun.Load(); n != 2 {
			t.Errorf("%d operations were begun, want 2", n)
		}
		answered <- struct{}{}
		synctest.Wait()
		if _ = call(); begun.Load() != 3 {
			t.Errorf("%d operations were begun after an answer, want 3", begun.Load())
		}
		time.Sleep(time.Minute) // The others are given up.
		synctest.Wait()
		if _ = call(); begun.Load() != 4 {
			t.Errorf("%d operations were begun after a minute, want 4", begun.Load())
		}
	})
}

// As an append that gets no connection of a pool.
func TestWhatWasNotSentIsNotStored(t *testing.T) {
	for name, c := range map[string]struct {
		sends, closes bool
		want          error
	}{
		"unsent at its deadline": {false, false, context.DeadlineExceeded},
		"unsent at Close":        {false, true, store.ErrClosed},
		"sent at its deadline":   {true, false, context.DeadlineExceeded},
		"sent at Close":          {true, true, store.ErrClosed},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := NewRunner(RunnerOptions{Store: "test"})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if c.closes {
				time.AfterFunc(time.Second, func() { _ = r.Close(context.WithoutCancel(t.Context()), func() error { return nil }) })
			}
			_, err := Run(ctx, r, "append", "job:1", func(ctx context.Context) (int, error) {
				Unsent(ctx)
				if c.sends {
					must(t, "Send()", Send(ctx))
				}
				time.Sleep(time.Minute) // The connection comes late.
				if err := Send(ctx); (err == nil) != c.sends {
					t.Errorf("%s: Send() = %v after that", name, err)
				}
				return 0, nil
			})
			if !errors.Is(err, c.want) || errors.Is(err, store.ErrNotStored) == c.sends {
				t.Errorf("an append %s = %v, want %v, and not stored: %v", name, err, c.want, !c.sends)
			}
			time.Sleep(time.Hour)
		})
	}
	must(t, "Send()", Send(t.Context())) // of no operation
}

// The check is made for others, too.
func TestAnAppendThatWaitsForACheckIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFitness(clock.New(), func(ctx context.Context) error {
			must(t, "Send()", Send(ctx)) // A statement of its own.
			<-ctx.Done()
			return ctx.Err()
		})
		r := NewRunner(RunnerOptions{Store: "test", Fitness: f})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Run(ctx, r, "append", "job:1", func(context.Context) (int, error) { t.Error("it was begun"); return 0, nil })
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, store.ErrNotStored) {
			t.Errorf("an append whose check takes longer = %v, want DeadlineExceeded and ErrNotStored", err)
		}
		synctest.Wait()
	})
}
