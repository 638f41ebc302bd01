package storekit

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

func TestASecretIsAskedForEachTime(t *testing.T) {
	n := ""
	c := NewCurrent("PasswordFunc", func(context.Context) (string, error) { n += "x"; return n, nil }, clock.New())
	for _, want := range []string{"x", "xx"} {
		if got, err := c.Get(t.Context()); got != want || err != nil {
			t.Errorf("Get() = %q, %v, want %q", got, err, want)
		}
	}
	if NewCurrent("PasswordFunc", nil, clock.New()) != nil {
		t.Error("NewCurrent() of no function = a Current, want nil")
	}
}

func TestASecretThatCanNotBeHadIsAClearError(t *testing.T) {
	cause := errors.New("the vault is sealed")
	for name, c := range map[string]struct {
		secret string
		err    error
		want   string
	}{
		"an error":           {"", cause, "PasswordFunc: the vault is sealed"},
		"a secret beside it": {"hunter2", cause, "PasswordFunc: the vault is sealed"},
		"nothing":            {"", nil, "PasswordFunc: it returned neither a secret nor an error"},
	} {
		got, err := NewCurrent("PasswordFunc", func(context.Context) (string, error) { return c.secret, c.err }, clock.New()).Get(t.Context())
		if got != "" || err == nil || err.Error() != c.want || !errors.Is(err, store.ErrNotStored) || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("Get() after %s = %q, %v, want none, and %q", name, got, err, c.want)
		}
	}
}

func TestAFunctionThatPanicsEndsNobody(t *testing.T) {
	c := NewCurrent("PasswordFunc", func(context.Context) (string, error) { panic("hunter2") }, clock.New())
	for range 2 { // The next one is asked, too.
		if got, err := c.Get(t.Context()); got != "" || !errors.Is(err, store.ErrNotStored) || err.Error() != "PasswordFunc: it panicked" {
			t.Errorf("Get() of a function that panics = %q, %v", got, err)
		}
	}
}

// A function that heeds no context holds one goroutine, however often it is asked.
func TestAFunctionThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		release := make(chan struct{})
		c := NewCurrent("PasswordFunc", func(context.Context) (string, error) { asked.Add(1); <-release; return "late", nil }, clock.New())
		for range 3 {
			began := time.Now()
			_, err := c.Get(t.Context())
			if took := time.Since(began); took != CurrentTime || !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "PasswordFunc: no answer in time") {
				t.Errorf("Get() = %v after %v, want a clear error after %v", err, took, CurrentTime)
			}
		}
		if asked := asked.Load(); asked != 1 {
			t.Errorf("the function that hangs was asked %d times, want once", asked)
		}
		close(release)
		synctest.Wait()
		if got, err := c.Get(t.Context()); got != "late" || err != nil {
			t.Errorf("Get() once it answers = %q, %v", got, err)
		}
	})
}

// Operations often have less time than the function has.
func TestAnOperationSaysThatItWaitsForASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := time.Minute
		c := NewCurrent("PasswordFunc", func(ctx context.Context) (string, error) {
			timer := time.NewTimer(slow)
			defer timer.Stop()
			select {
			case <-timer.C:
				return "hunter2", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}, clock.New())
		r := NewRunner(RunnerOptions{Store: "test"})
		wait := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := Run(ctx, r, "now", "", func(ctx context.Context) (int, error) {
				if _, err := c.Get(ctx); err != nil {
					return 0, err
				}
				<-ctx.Done()
				return 0, ctx.Err()
			})
			return err
		}
		if err := wait(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "PasswordFunc has not answered") {
			t.Errorf("an operation that waits for a secret = %v, want that it says so", err)
		}
		synctest.Wait()
		slow = time.Second
		if err := wait(); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "PasswordFunc") {
			t.Errorf("an operation that had its secret = %v, want no word of it", err)
		}
	})
}
