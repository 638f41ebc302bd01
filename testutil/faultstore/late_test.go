package faultstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestALateAppendLandsADayAfterItTimedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := faultstore.BlackHole(faultstore.Late)
		f.LateBy = 24 * time.Hour
		inner, l := pair(t, 0, faultstore.Options{Plan: script(f)})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Append(ctx, storetest.Grant("job", 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Append() = %v, want a time-out", err)
		}
		time.Sleep(23 * time.Hour)
		if stored(t, inner, 1) || l.Pending() != 1 {
			t.Errorf("after 23 h: stored, or Pending() = %d, want 1", l.Pending())
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.Settle(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Settle() with a short deadline = %v, want DeadlineExceeded", err)
		}
		if err := l.Settle(t.Context()); err != nil {
			t.Errorf("Settle() = %v, want nil", err)
		}
		if took := time.Since(began); took != 24*time.Hour {
			t.Errorf("landed after %v, want 24h", took)
		}
		if !stored(t, inner, 1) || l.Pending() != 0 {
			t.Errorf("after Settle: not stored, or Pending() = %d, want 0", l.Pending())
		}
		wantStruck(t, l, kinds{faultstore.KindBlackHole: 1, faultstore.KindLate: 1, faultstore.KindLanded: 1})
	})
}

func TestALateAppendMissesWhenItsKeyIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, l := pair(t, 0, faultstore.Options{Plan: script(faultstore.LandsLate(time.Minute))})
		if err := l.Append(t.Context(), storetest.Grant("job", 1)); !errors.Is(err, faultstore.ErrInjected) {
			t.Errorf("Append() = %v, want ErrInjected", err)
		}
		other := storetest.Grant("job", 1)
		other.Claim = "other"
		if err := inner.Append(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if err := l.Settle(t.Context()); err != nil {
			t.Errorf("Settle() = %v, want nil", err)
		}
		if r, err := inner.Get(t.Context(), "job", 1); err != nil || r.Claim != "other" {
			t.Errorf("Get(job, 1) = %+v, %v, want the record that was there first", r, err)
		}
		wantStruck(t, l, kinds{faultstore.KindLate: 1, faultstore.KindMissed: 1})
	})
}

func TestALateAppendLandsOnTheMockClock(t *testing.T) {
	mock := clock.NewMock()
	inner, l := pair(t, 0, faultstore.Options{Clock: mock, Plan: script(faultstore.LandsLate(time.Hour), faultstore.LandsLate(0))})
	if err := l.Append(t.Context(), storetest.Grant("job", 1)); !errors.Is(err, faultstore.ErrInjected) {
		t.Errorf("Append() = %v, want ErrInjected", err)
	}
	mock.Add(time.Hour - 1)
	if stored(t, inner, 1) || l.Pending() != 1 {
		t.Errorf("before its time: stored, or Pending() = %d, want 1", l.Pending())
	}
	mock.Add(1)
	if err := l.Settle(t.Context()); err != nil {
		t.Errorf("Settle() = %v, want nil", err)
	}
	if !stored(t, inner, 1) {
		t.Errorf("at its time: not stored")
	}
}

func TestCloseEndsWaitersAndCancelsLateLandings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, l := pair(t, 1, faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
			switch c.Op {
			case faultstore.OpAppend:
				return faultstore.LandsLate(time.Hour)
			case faultstore.OpGet:
				return faultstore.BlackHole(faultstore.Applied)
			default:
				return faultstore.Fault{Before: time.Hour}
			}
		}})
		if err := l.Append(t.Context(), storetest.Grant("job", 2)); !errors.Is(err, faultstore.ErrInjected) {
			t.Errorf("Append() = %v, want ErrInjected", err)
		}
		errs := make(chan error, 2)
		go func() { _, err := l.Get(context.Background(), "job", 1); errs <- err }()
		go func() { _, err := l.Now(context.Background()); errs <- err }()
		synctest.Wait()
		began := time.Now()
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, store.ErrClosed) {
				t.Errorf("an operation that waits during Close = %v, want ErrClosed", err)
			}
		}
		if err := l.Append(t.Context(), storetest.Grant("job", 3)); !errors.Is(err, store.ErrClosed) {
			t.Errorf("Append() after Close = %v, want ErrClosed", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("Close() took %v, want no time", took)
		}
		time.Sleep(2 * time.Hour)
		if stored(t, inner, 2) || l.Pending() != 0 {
			t.Errorf("a landing cancelled by Close: stored, or Pending() = %d, want 0", l.Pending())
		}
	})
}

func seqs(records []store.Record) []int64 {
	var s []int64
	for _, r := range records {
		s = append(s, r.Seq)
	}
	return s
}

func TestStaleReadsHideTheNewest(t *testing.T) {
	for _, c := range []struct {
		hide, limit int
		want        []int64
	}{
		{0, 2, []int64{5, 4}},
		{1, 1, []int64{4}},
		{2, 2, []int64{3, 2}},
		{2, 99, []int64{3, 2, 1}},
		{9, 2, nil},
	} {
		t.Run(fmt.Sprintf("%d hidden, limit %d", c.hide, c.limit), func(t *testing.T) {
			_, l := pair(t, 5, faultstore.Options{Plan: func(faultstore.Call) faultstore.Fault { return faultstore.StaleRead(c.hide) }})
			records, s, err := l.Tail(t.Context(), "job", c.limit)
			if err != nil || !slices.Equal(seqs(records), c.want) || s.IsZero() {
				t.Errorf("Tail(job, %d) = %d, %v, %v, want %d and a stamp", c.limit, seqs(records), s, err, c.want)
			}
			for seq := int64(1); seq <= 5; seq++ {
				if got, want := stored(t, l, seq), seq <= int64(5-c.hide); got != want {
					t.Errorf("Get(job, %d): there = %v, want %v", seq, got, want)
				}
			}
			if err := l.Append(t.Context(), storetest.Grant("job", 5)); !errors.Is(err, store.ErrConflict) {
				t.Errorf("Append(job, 5) = %v, want ErrConflict: only reads are stale", err)
			}
			if got, want := l.Struck()[faultstore.KindStale] > 0, c.hide > 0; got != want {
				t.Errorf("Struck()[stale] > 0 is %v, want %v", got, want)
			}
		})
	}
}

func TestStaleTailsKeepKeysThatCannotBeFollowed(t *testing.T) {
	inner, l := pair(t, 3, faultstore.Options{Plan: func(faultstore.Call) faultstore.Fault { return faultstore.StaleRead(1) }})
	inner.Put(storetest.Grant("job", store.MaxSeq+1))
	records, _, err := l.Tail(t.Context(), "job", 1)
	if err != nil || !slices.Equal(seqs(records), []int64{0, 2}) {
		t.Errorf("Tail(job, 1) = %d, %v, want the unreachable record and Seq 2", seqs(records), err)
	}
}
