package storetest

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

var timeCases = []testCase{
	{"a stamp is in UTC, truncated to its granularity, and names its server", func(t *testing.T, b *bench) {
		for range 20 {
			wantStamp(t, "Now()", now(t, b))
		}
	}},
	{"the store's clock never goes back", func(t *testing.T, b *bench) {
		last := now(t, b)
		for range 100 {
			s := now(t, b)
			if s.Server == last.Server && s.Time.Before(last.Time.Add(-s.MaxAge)) {
				t.Fatalf("Now() = %v after %v by the same server, want no step back", s.Time, last.Time)
			}
			last = s
		}
	}},
	{"the store's clock advances", func(t *testing.T, b *bench) {
		first := now(t, b)
		began := wall.Now()
		for !now(t, b).Time.After(first.Time) {
			if took := wall.Since(began); took > first.Granularity+first.MaxAge+soon {
				t.Fatalf("Now() = %v for %v, want it to advance by its granularity, %v", first.Time, took, first.Granularity)
			}
			wall.Sleep(time.Millisecond)
		}
	}},
	{"Now brackets the store's time", func(t *testing.T, b *bench) {
		var o offset
		began := wall.Now()
		for range 30 {
			sent := wall.Since(began)
			s := now(t, b)
			o.narrow(t, s, sent, wall.Since(began))
			wall.Sleep(time.Millisecond)
		}
	}},
	{"handles agree on the time", func(t *testing.T, b *bench) {
		other := b.handle(t)
		for range 20 {
			before, s, after := now(t, b), now(t, other), now(t, b)
			slack := s.Granularity + s.MaxAge + s.Skew
			if s.Time.Before(before.Time.Add(-slack)) || s.Time.After(after.Time.Add(after.Granularity+after.MaxAge+slack)) {
				t.Errorf("Now() of another handle = %v, want it in %v … %v, give or take %v", s.Time, before.Time, after.Time, slack)
			}
		}
	}},
	{"Tail gives a stamp if and only if the store says so", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 2)
		var o offset
		began := wall.Now()
		for _, workerType := range []string{"job", "unknown", "job", "job"} {
			sent := wall.Since(began)
			o.narrow(t, now(t, b), sent, wall.Since(began))
			sent = wall.Since(began)
			_, s, err := b.Tail(within(t), workerType, 1)
			received := wall.Since(began)
			switch {
			case err != nil:
				t.Fatalf("Tail(%s, 1) = %v, want nil", workerType, err)
			case !b.FreeStamp:
				if !s.IsZero() || s != (store.Stamp{}) {
					t.Errorf("Tail(%s, 1): stamp %+v, want the zero Stamp", workerType, s)
				}
			default:
				wantStamp(t, "Tail", s)
				o.narrow(t, s, sent, received)
			}
		}
	}},
}

// now asks the store for its time.
func now(t *testing.T, l store.Ledger) store.Stamp {
	t.Helper()
	s, err := l.Now(within(t))
	if err != nil {
		t.Fatalf("Now() = %v, want nil", err)
	}
	return s
}

func wantStamp(t *testing.T, what string, s store.Stamp) {
	t.Helper()
	switch {
	case s.IsZero():
		t.Fatalf("%s: no time in %+v", what, s)
	case s.Time.Location() != time.UTC:
		t.Errorf("%s: time %v, want UTC", what, s.Time)
	case s.Granularity <= 0 || s.Granularity > time.Minute:
		t.Errorf("%s: granularity %v, want more than 0 and at most 1 min", what, s.Granularity)
	case !s.Time.Equal(s.Time.Truncate(s.Granularity)):
		t.Errorf("%s: time %v, want it truncated to %v", what, s.Time, s.Granularity)
	case s.MaxAge < 0 || s.Skew < 0:
		t.Errorf("%s: max age %v, skew %v, want none below 0", what, s.MaxAge, s.Skew)
	case s.Server == "":
		t.Errorf("%s: no server named in %+v", what, s)
	}
}

// offset is an interval that contains (store time − local time). Each stamp gives one,
// and the intervals of correct stamps overlap if the clocks run at one rate.
type offset struct {
	known    bool
	low, top time.Duration
	origin   time.Time
	boot     boot
}

// boot is an interval that contains (store time − boot time), where stamps name the boot time that
// they are made from.
type boot struct {
	known    bool
	low, top time.Duration
}

// narrow adds a stamp, made at a time since another.
func (o *boot) narrow(t *testing.T, s store.Stamp, at time.Duration) {
	t.Helper()
	switch low, top := at-s.Boottime, at-s.Boottime+s.Granularity; {
	case s.Boottime < 0:
		t.Fatalf("stamp %+v: boot time below 0", s)
	case s.Boottime == 0:
		return
	case !o.known:
		*o = boot{true, low, top}
	default:
		o.low, o.top = max(o.low, low), min(o.top, top)
	}
	if o.low > o.top {
		t.Fatalf("stamp %+v: its time, less its boot time, is off by %v from what it was before, want the same always", s, o.low-o.top)
	}
}

// narrow adds a stamp that was requested at one local reading and arrived at another.
func (o *offset) narrow(t *testing.T, s store.Stamp, sent, received time.Duration) {
	t.Helper()
	if !o.known {
		o.origin = s.Time
	}
	at := s.Time.Sub(o.origin)
	o.boot.narrow(t, s, at)
	// Allow for rates that differ by 1000 ppm, and for the servers' skew.
	slack := 2*s.Skew + received/1000 + time.Microsecond
	low, top := at-received-slack, at+s.Granularity+s.MaxAge-sent+slack
	if !o.known {
		o.low, o.top, o.known = low, top, true
		return
	}
	o.low, o.top = max(o.low, low), min(o.top, top)
	if o.low > o.top {
		t.Fatalf("stamp %+v, asked for at %v and there at %v: made outside that call by %v", s, sent, received, o.low-o.top)
	}
}
