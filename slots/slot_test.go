package slots_test

import (
	"errors"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
)

// instant reads an RFC 3339 time.
func instant(t testing.TB, text string) time.Time {
	t.Helper()
	u, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return u.UTC()
}

// schedule reads a schedule's text.
func schedule(t testing.TB, text string) slots.Schedule {
	t.Helper()
	s, err := slots.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q) = %v", text, err)
	}
	return s
}

func TestSlotIsHalfOpen(t *testing.T) {
	s := slots.Slot{Start: instant(t, "2025-01-01T12:00:00Z"), End: instant(t, "2025-01-01T12:05:00Z")}
	for _, c := range []struct {
		at   time.Time
		want bool
	}{
		{s.Start.Add(-1), false},
		{s.Start, true},
		{s.End.Add(-1), true},
		{s.End, false},
	} {
		if got := s.Contains(c.at); got != c.want {
			t.Errorf("%v.Contains(%v) = %v, want %v", s, c.at, got, c.want)
		}
	}
	if got, want := s.Length(), 5*time.Minute; got != want {
		t.Errorf("Length() = %v, want %v", got, want)
	}
	if got, want := s.String(), "[2025-01-01T12:00:00Z, 2025-01-01T12:05:00Z)"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if s.IsZero() || !(slots.Slot{}).IsZero() {
		t.Errorf("IsZero() = %v and %v, want false and true", s.IsZero(), slots.Slot{}.IsZero())
	}
}

func TestMustPanicsWithTheError(t *testing.T) {
	want := errors.New("no schedule")
	defer func() {
		if got, ok := recover().(error); !ok || !errors.Is(got, want) {
			t.Errorf("Must panicked with %v, want %v", got, want)
		}
	}()
	slots.Must(nil, want)
}

func TestUpcomingYieldsTheSlotsAfterAnInstant(t *testing.T) {
	s := schedule(t, "every 10m")
	at := instant(t, "2025-01-01T12:00:00Z")
	want := at
	n := 0
	for got := range slots.Upcoming(s, at) {
		want = want.Add(10 * time.Minute)
		if !got.Start.Equal(want) || got.Length() != 10*time.Minute {
			t.Fatalf("slot %d of Upcoming = %v, want its start at %v", n, got, want)
		}
		if n++; n == 1000 {
			break
		}
	}
	if n != 1000 {
		t.Errorf("Upcoming yielded %d slots, want no end", n)
	}
}

// stuck is a broken foreign schedule.
type stuck struct{ slots.Schedule }

func (stuck) Next(time.Time) slots.Slot { return slots.Slot{Start: time.Unix(0, 0).UTC()} }

func TestUpcomingEndsWhenAScheduleDoesNotMoveOn(t *testing.T) {
	n := 0
	for range slots.Upcoming(stuck{}, time.Unix(-1, 0)) {
		if n++; n > 1 {
			t.Fatal("Upcoming goes on, want it to end")
		}
	}
	if n != 1 {
		t.Errorf("Upcoming yielded %d slots, want 1", n)
	}
}

func TestOutsideOfTheKnownYearsThereAreNoSlots(t *testing.T) {
	first, last := time.Time{}, instant(t, "9999-12-31T23:59:59Z")
	for _, text := range []string{
		"every 5m", "every 8784h", "cron * * * * *", "cron @yearly", "cron 0 2 * * * Europe/Berlin", "cron @yearly Pacific/Apia",
		"every 90m from 00:30", "cron 0 2 * * * + every 7m", "cron @daily Europe/Berlin except 9999-12-30..9999-12-31,0001-01-01", "cron @daily Asia/Tokyo shifted 1h", "every 8784h shifted 8784h",
	} {
		s := schedule(t, text)
		for _, at := range []time.Time{
			first.Add(-1),
			last.Add(time.Second),
			time.Unix(1<<63-1, 0),
			time.Unix(-1<<63, 0),
			time.Unix(1<<55, 999999999),
			time.Date(-1000000, 1, 1, 0, 0, 0, 0, time.UTC),
		} {
			if got := s.At(at); !got.IsZero() {
				t.Errorf("%v: At(year %d) = %v, want the zero slot", s, at.Year(), got)
			}
			if got := s.Next(at); !got.IsZero() {
				t.Errorf("%v: Next(year %d) = %v, want the zero slot", s, at.Year(), got)
			}
		}
		if got := s.Next(last); !got.IsZero() {
			t.Errorf("%v: Next(%v) = %v, want the zero slot", s, last, got)
		}
		n := 0
		for range slots.Upcoming(s, last.AddDate(0, 0, -1)) {
			n++
		}
		if n > 24*60 {
			t.Errorf("%v: the last day has %d slots, want at most one for each minute", s, n)
		}
		if next := s.Next(first); next.IsZero() || !next.Start.After(first) {
			t.Errorf("%v: Next(%v) = %v, want a slot", s, first, next)
		}
	}
}
