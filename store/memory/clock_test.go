package memory_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
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

func TestAHandleOutlivesTheOthers(t *testing.T) {
	first := memory.New(memory.Options{})
	if err := first.Append(t.Context(), storetest.Grant("job", 1)); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := first.Handle()
	if r, err := second.Get(t.Context(), "job", 1); err != nil || r != storetest.Grant("job", 1) {
		t.Errorf("Get(job, 1) by another handle = %+v, %v, want the record", r, err)
	}
	if _, err := first.Get(t.Context(), "job", 1); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Get(job, 1) by a closed handle = %v, want ErrClosed", err)
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

func TestKeysBelowOneAreReported(t *testing.T) {
	l := memory.New(memory.Options{})
	if err := l.Append(t.Context(), storetest.Grant("job", 1)); err != nil {
		t.Fatal(err)
	}
	l.Put(storetest.Grant("job", -5))
	got, _, err := l.Tail(t.Context(), "job", 1)
	if err != nil || len(got) != 2 || got[0].Defect == "" || got[0].Seq != 0 || got[1].Seq != 1 {
		t.Errorf("Tail(job, 1) with a key -5 = %+v, %v, want a Defect with Seq 0, then Seq 1", got, err)
	}
}

func TestTailWithoutALimitIsEmpty(t *testing.T) {
	l := memory.New(memory.Options{})
	if err := l.Append(t.Context(), storetest.Grant("job", 1)); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{0, -1, math.MinInt} {
		if got, _, err := l.Tail(t.Context(), "job", limit); err != nil || len(got) != 0 {
			t.Errorf("Tail(job, %d) = %+v, %v, want none", limit, got, err)
		}
	}
}
