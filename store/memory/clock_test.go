package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

func TestStoreTimeIsTheBubblesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(memory.Options{})
		for _, step := range []time.Duration{0, time.Microsecond, time.Hour, 366 * 24 * time.Hour} {
			time.Sleep(step)
			s, err := l.Now(t.Context())
			if want := time.Now(); err != nil || !s.Time.Equal(want) {
				t.Errorf("Now() = %v, %v, want %v", s.Time, err, want)
			}
			_, free, err := l.Tail(t.Context(), "job", 1)
			if err != nil || free != s {
				t.Errorf("Tail(): stamp %+v, %v, want %+v", free, err, s)
			}
		}
	})
}

func TestStoreTimeIsTheInjectedClocks(t *testing.T) {
	mock := clock.NewMock()
	mock.Set(time.Date(2026, time.March, 2, 12, 0, 0, 1999, time.FixedZone("x", 3600)))
	s, err := memory.New(memory.Options{Clock: mock}).Now(t.Context())
	want := store.Stamp{
		Time:        time.Date(2026, time.March, 2, 11, 0, 0, 1000, time.UTC),
		Granularity: time.Microsecond,
		Server:      "memory",
	}
	if err != nil || s != want {
		t.Errorf("Now() = %+v, %v, want %+v, truncated and in UTC", s, err, want)
	}
}

func TestErrorsTellTheCauseOfAnEndedContext(t *testing.T) {
	cause := errors.New("lease expired")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := memory.New(memory.Options{}).Now(ctx)
	if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
		t.Errorf("Now() with a cancelled context = %v, want Canceled and its cause", err)
	}
}
