package slots_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
)

// maskField is a cron field with the values whose bits are set, from low on, or a
// star for none.
func maskField(mask uint64, low, high int) string {
	var words []string
	for v := low; v <= high; v++ {
		if mask&(1<<(v-low)) != 0 {
			words = append(words, strconv.Itoa(v))
		}
	}
	if len(words) == 0 {
		return "*"
	}
	return strings.Join(words, ",")
}

// checkFirings checks a slot against the local clock: it starts where the spec fires,
// and in it the spec doesn't fire: not at a probe, and not where the clocks change.
func checkFirings(t testing.TB, s slots.Schedule, c localClock, slot slots.Slot, probe uint16) {
	t.Helper()
	if slot.IsZero() {
		return
	}
	cut := s.At(slot.Start.Add(-1)).Length() == slots.MaxInterval
	if !c.fires(slot.Start) && !cut {
		t.Fatalf("%v: %v starts where the spec doesn't fire, at %v local time", s, slot, c.wall(slot.Start))
	}
	first := c.wall(slot.Start)
	inside := []time.Time{
		slot.Start.Add(slot.Length() / (1 << 16) * time.Duration(probe)).Truncate(time.Minute),
		slot.Start.Add(c.fields.Next(first).Sub(first)), // if the clocks don't change
	}
	for _, from := range []time.Time{slot.Start, slot.End} {
		start, end := from.In(c.loc).ZoneBounds()
		inside = append(inside, start.UTC(), end.UTC())
	}
	for _, at := range inside {
		if at.After(slot.Start) && at.Before(slot.End) && c.fires(at) {
			t.Fatalf("%v: %v goes on over %v (%v local time), where the spec fires", s, slot, at, c.wall(at))
		}
	}
}

// checkGrid walks some slots in both directions.
func checkGrid(t testing.TB, s slots.Schedule, at time.Time, steps int) {
	t.Helper()
	walk(t, s, at, func(_ slots.Slot, n int) bool { return n < steps })
	for slot, n := s.At(at), 0; n < steps && !slot.IsZero(); n++ {
		before := s.At(slot.Start.Add(-1))
		if !before.IsZero() && before.End != slot.Start {
			t.Fatalf("%v: At(just before %v) = %v, want it to end there", s, slot, before)
		}
		slot = before
	}
}

// walk checks slots from that of an instant on, each by the one after it.
func walk(t testing.TB, s slots.Schedule, at time.Time, on func(slots.Slot, int) bool) {
	t.Helper()
	for slot, n := s.At(at), 0; !slot.IsZero() && on(slot, n); n++ {
		next := s.Next(slot.Start)
		switch {
		case slot.Length() <= 0 || slot.Length() > slots.MaxInterval:
			t.Fatalf("%v: %v lasts %v", s, slot, slot.Length())
		case next.IsZero() && ends(slot.End):
		case next.Start != slot.End:
			t.Fatalf("%v: Next(%v) = %v, want it to start at %v", s, slot.Start, next, slot.End)
		case s.At(slot.End.Add(-1)) != slot || s.At(slot.End) != next:
			t.Fatalf("%v: At around %v = %v, %v, want %v, %v", s, slot.End, s.At(slot.End.Add(-1)), s.At(slot.End), slot, next)
		}
		slot = next
	}
}

// FuzzCron makes specs of sets of values, so that nearly all inputs are
// schedules, in all zones.
func FuzzCron(f *testing.F) {
	zones := zoneNames(f)
	locations := map[string]*time.Location{}
	f.Add(uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint16(0), int64(1_700_000_000), uint16(1<<15))
	f.Add(uint64(1<<30), uint64(1<<2), uint64(0), uint64(0), uint64(0), indexOf(f, zones, "Europe/Berlin"), int64(1_743_296_400), uint16(9))
	f.Add(uint64(1<<30), uint64(1<<2), uint64(0), uint64(0), uint64(0), indexOf(f, zones, "Europe/Berlin"), int64(1_761_440_400), uint16(1<<14))
	f.Add(uint64(1<<30), uint64(1<<24-1), uint64(0), uint64(0), uint64(0), indexOf(f, zones, "Europe/Berlin"), int64(1_761_440_400), uint16(1<<14))
	f.Add(uint64(1), uint64(1), uint64(1<<29), uint64(1<<11), uint64(0), indexOf(f, zones, "Pacific/Apia"), int64(1_325_239_200), uint16(1<<15))
	f.Add(uint64(1<<59), uint64(1<<23), uint64(1<<30), uint64(1<<11), uint64(1<<3), indexOf(f, zones, "Africa/Monrovia"), int64(63_593_070), uint16(1))
	f.Add(uint64(1), uint64(0), uint64(1), uint64(1), uint64(0), indexOf(f, zones, "Europe/Lisbon"), int64(852_076_800), uint16(65535))
	f.Add(uint64(1<<15), uint64(1<<1|1<<2), uint64(0), uint64(0), uint64(1), indexOf(f, zones, "Australia/Lord_Howe"), int64(1_762_000_000), uint16(1<<15))
	f.Fuzz(func(t *testing.T, minutes, hours, days, months, weekdays uint64, place uint16, second int64, probe uint16) {
		name := zones[int(place)%len(zones)]
		spec := strings.Join([]string{
			maskField(minutes, 0, 59), maskField(hours, 0, 23), maskField(days, 1, 31), maskField(months, 1, 12), maskField(weekdays, 0, 6),
		}, " ")
		s, err := slots.Cron(spec, name)
		if err != nil {
			if why := err.Error(); !strings.Contains(why, "never fires") && !strings.Contains(why, "at most 366 are allowed") {
				t.Fatalf("Cron(%q, %q) = %v, want a schedule", spec, name, err)
			}
			return
		}
		at := time.Unix(second, 0)
		checkPartition(t, s, at)
		checkGrid(t, s, at, 4)
		const year1973, year2200 = 94694400, 7258118400
		if second < year1973+int64(slots.MaxInterval/time.Second) || second >= year2200 {
			return
		}
		loc := locations[name]
		if loc == nil {
			loc = zone(t, name)
			locations[name] = loc
		}
		c := localClockOf(t, spec, loc)
		checkFirings(t, s, c, s.At(at), probe)
		checkFirings(t, s, c, s.Next(at), probe)
		if got, want := s.At(at.In(loc)), s.At(at.UTC()); got != want {
			t.Fatalf("%v: At(%v) = %v seen from %s, want %v", s, at, got, name, want)
		}
	})
}

// indexOf is the place of a zone among all.
func indexOf(t testing.TB, zones []string, name string) uint16 {
	t.Helper()
	i := slices.Index(zones, name)
	if i < 0 {
		t.Fatalf("testdata/zones.txt has no %s", name)
	}
	return uint16(i)
}
