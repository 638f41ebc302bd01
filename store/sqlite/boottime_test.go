package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/boottime"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
)

// realClock plays the machine's own clock.
type realClock struct{ *booted }

func (realClock) Reads(boottime.Machine) {}

// ahead is how far store time is ahead of boot time, by a stamp.
func ahead(t *testing.T, s store.Stamp) int64 {
	t.Helper()
	if s.Boottime == 0 {
		t.Errorf("stamp %+v says nothing of boot time", s)
	}
	return s.Time.Sub(time.UnixMicro(0)).Microseconds() - s.Boottime.Microseconds()
}

func TestStampsSayWhichReadingOfTheBootClockTheyAreMadeFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	c := realClock{bootedAt(noon, time.Hour, time.Millisecond)}
	o := Options{Path: path, Clock: c, BootID: "machine"}
	reader := o
	reader.ReadOnly = true
	worker := open(t, o)
	want := ahead(t, now(t, worker))
	all := []*Ledger{worker, open(t, o), open(t, reader)}
	for _, set := range []time.Duration{0, 48 * time.Hour, -time.Hour} {
		c.Mock.Add(set)
		c.since += 17*time.Hour + 3*time.Microsecond
		for i, l := range all {
			before := c.since
			s := now(t, l)
			if s.Boottime <= before || s.Boottime > c.since {
				t.Errorf("Now() of handle %d: boot time %v, asked for at %v and there at %v", i, s.Boottime, before, c.since)
			}
			documenttest.Equal(t, "store time, less boot time, by Now()", ahead(t, s), want)
			_, s, err := l.Tail(t.Context(), "job", 1)
			must(t, "Tail()", err)
			documenttest.Equal(t, "store time, less boot time, by Tail()", ahead(t, s), want)
		}
	}
}

func TestStampsSayNothingOfBootTimeWhereStoreTimeMayGoAnotherWay(t *testing.T) {
	path := grown(t)
	real := realClock{bootedAt(noon, time.Hour, 0)}
	without := func(what string, l *Ledger) {
		t.Helper()
		if s := now(t, l); s.Boottime != 0 {
			t.Errorf("%s: boot time %v, want none", what, s.Boottime)
		}
	}
	reader := open(t, Options{Path: path, Clock: real, BootID: "machine", ReadOnly: true})
	without("no worker has chosen an offset yet", reader)
	now(t, open(t, Options{Path: path, Clock: real, BootID: "machine"}))
	ahead(t, now(t, reader))
	other := filepath.Join(t.TempDir(), "ledger.db")
	without("a clock that a test plays", open(t, Options{Path: other, Clock: real.booted, BootID: "played"}))
	l := open(t, Options{Path: other, Clock: real})
	l.boot = machine{}
	without("no boot clock", l)
}
