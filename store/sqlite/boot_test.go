package sqlite

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/clocks"
)

// booted is a clock with its own boot clock, on which some time passes before each
// reading.
type booted struct {
	*clock.Mock
	since, step time.Duration
}

// bootedAt is such a clock.
func bootedAt(wall time.Time, since, step time.Duration) *booted {
	b := &booted{Mock: clock.NewMock(), since: since, step: step}
	b.Set(wall)
	return b
}

func (b *booted) pass() {
	b.Mock.Add(b.step)
	b.since += b.step
}

func (b *booted) Now() time.Time {
	b.pass()
	return b.Mock.Now()
}

func (b *booted) Boottime() time.Duration {
	b.pass()
	return b.since
}

// noon is some time with parts of a millisecond.
var noon = time.Date(2026, time.March, 2, 12, 0, 0, 123_456_789, time.UTC)

func now(t *testing.T, l *Ledger) store.Stamp {
	t.Helper()
	s, err := l.Now(t.Context())
	must(t, "Now()", err)
	return s
}

func TestAWrongWallClockChangesNothingOnceTheOffsetIsStored(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the kernel's boot clock")
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	wall := clock.New()
	right := open(t, Options{Path: path})
	before := wall.Now()
	first := now(t, right)
	after := wall.Now()
	if first.Time.Before(before.Truncate(time.Microsecond).Add(-time.Microsecond)) || first.Time.After(after) {
		t.Errorf("Now() = %v, want the wall clock's time of %v … %v", first.Time, before, after)
	}
	if first.Granularity != time.Microsecond || first.MaxAge != 0 || first.Skew != 0 || !strings.HasPrefix(first.Server, "boot ") {
		t.Errorf("Now() = %+v, want 1 µs, no age, no skew, and a boot", first)
	}
	for _, by := range []time.Duration{time.Hour, -time.Hour, 50 * 365 * 24 * time.Hour} {
		late := open(t, Options{Path: path, Clock: clocks.Skewed(wall, by)})
		a, b, c := now(t, right), now(t, late), now(t, right)
		if b.Time.Before(a.Time) || b.Time.After(c.Time) || b.Server != a.Server {
			t.Errorf("Now() by a clock that is %v off = %v, want between %v and %v", by, b, a.Time, c.Time)
		}
		_, s, err := late.Tail(t.Context(), "job", 1)
		if end := now(t, right); err != nil || s.Time.Before(c.Time) || s.Time.After(end.Time) || s.Server != a.Server {
			t.Errorf("Tail() stamp by a clock that is %v off = %v, %v, want between %v and %v", by, s, err, c.Time, end.Time)
		}
	}
}

func TestStoreTimeIsNeverAheadOfTheWallClockThatItWasTakenFrom(t *testing.T) {
	c := bootedAt(noon, time.Hour, 5*time.Millisecond)
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "ledger.db"), Clock: c, BootID: "halting"})
	before := c.Mock.Now()
	got := now(t, l).Time
	if after := c.Mock.Now(); got.Before(before) || got.After(after) {
		t.Errorf("Now() = %v, want %v … %v", got, before, after)
	}
}

func TestTheOffsetIsTakenAnewAfterABoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	c := bootedAt(noon, 10*time.Second, 0)
	l := open(t, Options{Path: path, Clock: c, BootID: "one"})
	if got, want := now(t, l), noon.Truncate(time.Microsecond); !got.Time.Equal(want) || got.Server != "boot one" {
		t.Errorf("Now() = %v, want %v by boot one", got, want)
	}
	c.Set(noon.Add(-time.Hour))
	c.since += 90 * time.Second
	if got, want := now(t, l).Time, noon.Add(90*time.Second).Truncate(time.Microsecond); !got.Equal(want) {
		t.Errorf("Now() after 90 s and a step of the wall clock = %v, want %v", got, want)
	}
	c.Set(noon.Add(time.Hour))
	c.since = time.Second
	l = open(t, Options{Path: path, Clock: c, BootID: "two"})
	if got, want := now(t, l), noon.Add(time.Hour).Truncate(time.Microsecond); !got.Time.Equal(want) || got.Server != "boot two" {
		t.Errorf("Now() after a boot = %v, want %v by boot two", got, want)
	}
}

func TestALookerStoresNoOffset(t *testing.T) {
	path := grown(t)
	c := bootedAt(noon.Truncate(time.Microsecond), time.Hour, 0)
	looker := open(t, Options{Path: path, Clock: c, BootID: "b", ReadOnly: true})
	if got := now(t, looker); !got.Time.Equal(c.Now()) || got.Server != "boot b, not in use yet" {
		t.Errorf("Now() before anybody leased = %v, want the wall clock under another name", got)
	}
	worker := bootedAt(c.Now().Add(time.Minute), time.Hour, 0)
	want := now(t, open(t, Options{Path: path, Clock: worker, BootID: "b"}))
	documenttest.Equal(t, "Now() after a worker came", now(t, looker), want)
}

func TestABubblesClockIsStoreTimeUnderABootIDOfItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		l, err := Open(t.Context(), Options{Path: path, Clock: c, BootID: "bubble"})
		must(t, "Open()", err)
		for range 3 {
			if got := now(t, l).Time; !got.Equal(c.Now()) {
				t.Errorf("Now() = %v, want the bubble's %v", got, c.Now())
			}
			time.Sleep(5 * time.Minute)
		}
		wantErr(t, "Close()", l.Close(t.Context()), nil)
	})
}

func TestWithoutABootClockStoreTimeIsTheWallClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	c := clock.NewMock()
	c.Set(time.Date(2026, time.March, 2, 12, 0, 0, 1999, time.UTC))
	l := open(t, Options{Path: path, Clock: c})
	l.boot = machine{}
	if got, want := now(t, l), c.Now().Truncate(time.Microsecond); !got.Time.Equal(want) || got.Server != "wall" {
		t.Errorf("Now() = %v, want %v by wall", got, want)
	}
}
