package slots_test

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

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

// wall is what the local clock shows, as if it were UTC.
func wall(at time.Time, loc *time.Location) time.Time {
	_, offset := at.In(loc).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// oracle evaluates a spec by robfig/cron on a clock without changes, and puts the
// changes of a zone in by looking at its offsets. It knows offsets of whole
// minutes, so nothing before 1973.
type oracle struct {
	fields    *cron.SpecSchedule
	loc       *time.Location
	everyHour bool
}

func oracleOf(t testing.TB, spec string, loc *time.Location) oracle {
	t.Helper()
	parsed, err := cron.ParseStandard(spec)
	if err != nil {
		t.Fatal(err)
	}
	fields := parsed.(*cron.SpecSchedule)
	fields.Location = time.UTC
	return oracle{fields, loc, bits.OnesCount64(fields.Hour<<40) == 24}
}

// unseen is the first local time that the clock had not shown before an instant.
func (o oracle) unseen(at time.Time) time.Time {
	first := wall(at.Add(-time.Second), o.loc).Add(time.Second)
	const stride, back = 30 * time.Minute, 48 * time.Hour
	if changed, _ := at.Add(-time.Second).In(o.loc).ZoneBounds(); at.Sub(changed) > back+stride {
		return first
	}
	_, offset := at.Add(-time.Second).In(o.loc).Zone()
	for u := at.Add(-stride); at.Sub(u) <= back; u = u.Add(-stride) {
		if _, other := u.In(o.loc).Zone(); other == offset {
			continue
		}
		for v := u; v.Before(u.Add(stride)); v = v.Add(time.Minute) {
			if shown := wall(v, o.loc).Add(time.Minute); shown.After(first) && wall(v.Add(59*time.Second), o.loc).Before(shown) {
				first = shown
			}
		}
	}
	return first
}

// fires reports whether the spec fires at an instant: at a local time that
// matches, once for each unless in every hour, and for what a gap skipped.
func (o oracle) fires(at time.Time) bool {
	shown, unseen := wall(at, o.loc), o.unseen(at)
	if o.fields.Next(shown.Add(-time.Second)).Equal(shown) && (o.everyHour || !shown.Before(unseen)) {
		return true
	}
	skipped := shown.Sub(unseen)
	if skipped <= 0 || o.everyHour && skipped < 12*time.Hour {
		return false
	}
	return o.fields.Next(unseen.Add(-time.Second)).Before(shown)
}

// checkFirings checks a slot against the oracle: it starts where the spec fires,
// and in it the spec doesn't fire: not at a probe, and not where the clocks change.
func checkFirings(t testing.TB, s slots.Schedule, o oracle, slot slots.Slot, probe uint16) {
	t.Helper()
	if slot.IsZero() {
		return
	}
	cut := s.At(slot.Start.Add(-1)).Length() == slots.MaxInterval
	if !o.fires(slot.Start) && !cut {
		t.Fatalf("%v: %v starts where the spec doesn't fire, at %v local time", s, slot, wall(slot.Start, o.loc))
	}
	first := wall(slot.Start, o.loc)
	inside := []time.Time{
		slot.Start.Add(slot.Length() / (1 << 16) * time.Duration(probe)).Truncate(time.Minute),
		slot.Start.Add(o.fields.Next(first).Sub(first)), // if the clocks don't change
	}
	for _, from := range []time.Time{slot.Start, slot.End} {
		start, end := from.In(o.loc).ZoneBounds()
		inside = append(inside, start.UTC(), end.UTC())
	}
	for _, at := range inside {
		if at.After(slot.Start) && at.Before(slot.End) && o.fires(at) {
			t.Fatalf("%v: %v goes on over %v (%v local time), where the spec fires", s, slot, at, wall(at, o.loc))
		}
	}
}

// checkGrid walks some slots in both directions.
func checkGrid(t testing.TB, s slots.Schedule, at time.Time, steps int) {
	t.Helper()
	for slot, n := s.At(at), 0; n < steps && !slot.IsZero(); n++ {
		next := s.Next(slot.Start)
		if !next.IsZero() && (next.Start != slot.End || !next.Start.After(slot.Start)) {
			t.Fatalf("%v: Next(%v) = %v, want it to follow %v", s, slot.Start, next, slot)
		}
		slot = next
	}
	for slot, n := s.At(at), 0; n < steps && !slot.IsZero(); n++ {
		before := s.At(slot.Start.Add(-1))
		if !before.IsZero() && before.End != slot.Start {
			t.Fatalf("%v: At(just before %v) = %v, want it to end there", s, slot, before)
		}
		slot = before
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
	f.Fuzz(func(t *testing.T, minutes, hours, days, months, weekdays uint64, zone uint16, second int64, probe uint16) {
		name := zones[int(zone)%len(zones)]
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
			if loc, err = time.LoadLocation(name); err != nil {
				t.Fatal(err)
			}
			if name == "UTC" {
				loc = time.UTC
			}
			locations[name] = loc
		}
		o := oracleOf(t, spec, loc)
		checkFirings(t, s, o, s.At(at), probe)
		checkFirings(t, s, o, s.Next(at), probe)
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
