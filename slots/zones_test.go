package slots_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/slots"
)

// sampled reports that a sample of the zones of the tz database is enough, unless
// SLOTLEASE_ZONES=all asks for all, as CI does: they take 20 s of a processor, and the race
// detector makes that some minutes.
func sampled() bool { return race.Enabled || os.Getenv("SLOTLEASE_ZONES") != "all" }

// odd are the zones with changes that few others have.
var odd = []string{
	"UTC", "Europe/Berlin", "America/Los_Angeles", "Australia/Lord_Howe", "Antarctica/Troll", "Pacific/Apia", "Africa/Casablanca",
	"Africa/El_Aaiun", "Africa/Monrovia", "America/Sao_Paulo", "America/Havana", "America/Nuuk", "Pacific/Kwajalein", "Pacific/Kiritimati",
	"Asia/Tehran", "Asia/Gaza", "Asia/Pyongyang", "Europe/Dublin", "Europe/Lisbon", "Antarctica/Casey", "America/Caracas", "Asia/Kathmandu",
}

// zoneNames are all the names of the tz database.
func zoneNames(t testing.TB) []string {
	t.Helper()
	file, err := os.ReadFile("testdata/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(file))
	if len(names) < 500 {
		t.Fatalf("testdata/zones.txt has %d zones, want about 600", len(names))
	}
	return names
}

// zonesUnderTest are all the names of the tz database or, if they are sampled, the odd ones
// and every 80th.
func zonesUnderTest(t testing.TB) []string {
	t.Helper()
	names := zoneNames(t)
	if !sampled() {
		return names
	}
	sample := slices.Clone(odd)
	for i := 0; i < len(names); i += 80 {
		sample = append(sample, names[i])
	}
	return sample
}

// changes are the instants from..to at which a zone's offset changes, found by
// looking at the offset alone.
func changes(loc *time.Location, from, to time.Time) []time.Time {
	offset := func(u int64) int {
		_, o := time.Unix(u, 0).In(loc).Zone()
		return o
	}
	var found []time.Time
	const stride = 5 * 24 * 60 * 60
	for u := from.Unix(); u < to.Unix(); u += stride {
		low, high := u, u+stride
		if offset(low) == offset(high) {
			continue
		}
		for high-low > 1 {
			if mid := (low + high) / 2; offset(mid) == offset(low) {
				low = mid
			} else {
				high = mid
			}
		}
		found = append(found, time.Unix(high, 0))
	}
	return found
}

// clockOf is the same for two zones whose clocks never differ: their offsets, first and after
// each change.
func clockOf(loc *time.Location, first time.Time, changes []time.Time) string {
	var b strings.Builder
	for _, at := range append([]time.Time{first}, changes...) {
		b.WriteString(at.In(loc).Format(time.RFC3339))
	}
	return b.String()
}

// TestSlotsPartitionTimeInEveryZone looks at the days around the changes of the
// clocks from 1970 to 2100: all of them, or a third if zones are sampled.
func TestSlotsPartitionTimeInEveryZone(t *testing.T) {
	t.Parallel()
	spans := []struct {
		spec   string
		around time.Duration
	}{
		{"*/20 * * * *", 3 * time.Hour},
		{"*/20 0-6 * * *", 3 * time.Hour},
		{"30 * * * *", 3 * time.Hour},
		{"30 2 * * *", 48 * time.Hour},
		{"0 0 * * *", 48 * time.Hour},
		{"1 0 1 1 *", 24 * time.Hour},
		{"59 * 31 12 *", time.Hour},
	}
	first, last := instant(t, "1970-01-01T00:00:00Z"), instant(t, "2100-01-01T00:00:00Z")
	looked := map[string]bool{}
	for _, name := range zonesUnderTest(t) {
		loc := zone(t, name)
		interesting := changes(loc, first, last)
		clock := clockOf(loc, first, interesting)
		if looked[clock] {
			continue // Nearly half of the names are others' aliases.
		}
		looked[clock] = true
		if sampled() {
			// An odd step, so that both changes of a year take their turn.
			n := 0
			interesting = slices.DeleteFunc(interesting, func(time.Time) bool { n++; return n%3 != 1 })
		}
		for year := 1972; year < 2100; year += 4 {
			// The ends of leap years, where package time's bounds of a zone are wrong.
			interesting = append(interesting, time.Date(year, 12, 31, 12, 0, 0, 0, time.UTC))
		}
		for _, sp := range spans {
			s, err := slots.Cron(sp.spec, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range interesting {
				end := change.Add(sp.around)
				walk(t, s, change.Add(-sp.around), func(slot slots.Slot, _ int) bool { return slot.Start.Before(end) })
			}
		}
	}
}

// localClock is a spec on a zone's local clock, which is played. It has the documented
// rules in the plainest form.
type localClock struct {
	fields    *oracle
	loc       *time.Location
	everyHour bool
}

func localClockOf(t testing.TB, spec string, loc *time.Location) localClock {
	t.Helper()
	fields := oracleOf("cron", spec)
	return localClock{fields, loc, !slices.Contains(fields.hours[:], false)}
}

// wall is what the clock shows, as if it were UTC.
func (c localClock) wall(at time.Time) time.Time {
	_, offset := at.In(c.loc).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// firings lists when the spec fires in (from, to], by playing the clock second by second
// or in longer steps, from lead earlier on.
func (c localClock) firings(from, to time.Time, lead, step time.Duration) (fired []time.Time) {
	shown := c.wall(from.Add(-lead)) // The clock has shown everything before.
	for u := from.Add(-lead); !u.After(to); u = u.Add(step) {
		wall := c.wall(u)
		if u.After(from) && c.due(wall, shown) {
			fired = append(fired, u)
		}
		if end := wall.Add(step); end.After(shown) {
			shown = end
		}
	}
	return fired
}

// due reports whether the spec fires when the clock shows a local time: if that matches, and
// wasn't shown before unless in every hour, and for what a gap skipped.
func (c localClock) due(wall, shown time.Time) bool {
	if c.fields.fires(wall) && (c.everyHour || !wall.Before(shown)) {
		return true
	}
	skipped := wall.Sub(shown)
	return skipped > 0 && (!c.everyHour || skipped >= 12*time.Hour) && c.fields.Next(shown.Add(-time.Second)).Before(wall)
}

// fires reports whether the spec fires at a minute. Offsets are taken for whole minutes, so
// nothing before 1973.
func (c localClock) fires(at time.Time) bool {
	lead := 50 * time.Hour // longer ago than what can be shown again
	if changed, _ := at.Add(-time.Second).In(c.loc).ZoneBounds(); at.Sub(changed) > lead {
		lead = 0
	}
	return len(c.firings(at.Add(-time.Minute), at, lead, time.Minute)) > 0
}

// upcoming lists the starts of slots in (from, to].
func upcoming(s slots.Schedule, from, to time.Time) []time.Time {
	var starts []time.Time
	for slot := range slots.Upcoming(s, from) {
		if slot.Start.After(to) {
			break
		}
		starts = append(starts, slot.Start)
	}
	return starts
}

// compareFirings checks a schedule against the local clock that is played.
func compareFirings(t testing.TB, spec, zoneName string, from, to time.Time, lead, step time.Duration) {
	t.Helper()
	s, err := slots.Cron(spec, zoneName)
	if err != nil {
		t.Fatal(err)
	}
	want := localClockOf(t, spec, zone(t, zoneName)).firings(from, to, lead, step)
	cut := func(start time.Time) bool { // Nothing fires there.
		return s.At(start.Add(-1)).Length() == slots.MaxInterval && !slices.ContainsFunc(want, start.Equal)
	}
	if got := slices.DeleteFunc(upcoming(s, from, to), cut); !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Fatalf("%v: slots from %v to %v start at\n%v, want\n%v", s, from, to, got, want)
	}
}

func TestFiringsFollowALocalClockAroundEveryChange(t *testing.T) {
	t.Parallel()
	specs := []string{"*/20 * * * *", "7 * * * *", "*/20 0-6 * * *", "30 2 * * *", "0 0 * * *", "0 * 31 * *"}
	first, last := instant(t, "1973-01-01T00:00:00Z"), instant(t, "2040-01-01T00:00:00Z")
	for _, name := range odd {
		for i, change := range changes(zone(t, name), first, last) {
			if i%12 != 0 && sampled() && name != "Pacific/Kwajalein" && name != "Pacific/Kiritimati" && name != "Pacific/Apia" {
				continue
			}
			// By whole minutes from an instant that is one: the offsets are, too.
			compareFirings(t, specs[i%len(specs)], name, change.Add(-30*time.Hour), change.Add(30*time.Hour), 26*time.Hour, time.Minute)
		}
	}
}

func TestFiringsFollowALocalClockThatChangesBySeconds(t *testing.T) {
	n := 0
	for _, name := range []string{"Africa/Monrovia", "Europe/Brussels", "Europe/Dublin", "Asia/Kolkata"} {
		loc := zone(t, name)
		for _, change := range changes(loc, instant(t, "1885-01-01T00:00:00Z"), instant(t, "1973-01-01T00:00:00Z")) {
			_, before := change.Add(-time.Second).In(loc).Zone()
			_, after := change.In(loc).Zone()
			if (after-before)%60 == 0 {
				continue
			}
			n++
			for _, spec := range []string{"*/7 0-12,20-23 * * *", "*/7 * * * *"} {
				compareFirings(t, spec, name, change.Add(-time.Hour), change.Add(2*time.Hour), 2*time.Hour, time.Second)
			}
		}
	}
	if n < 4 {
		t.Errorf("%d changes by seconds were found, want one for each zone", n)
	}
}

// specs draws cron specs that have slots.
func specs() *rapid.Generator[string] {
	field := func(low, high int) *rapid.Generator[string] {
		return rapid.OneOf(
			rapid.Just("*"),
			rapid.Custom(func(t *rapid.T) string {
				from := rapid.IntRange(low, high).Draw(t, "from")
				to := rapid.IntRange(from, high).Draw(t, "to")
				step := rapid.IntRange(1, 9).Draw(t, "step")
				return strconv.Itoa(from) + "-" + strconv.Itoa(to) + "/" + strconv.Itoa(step)
			}),
			rapid.Map(rapid.SliceOfN(rapid.IntRange(low, high), 1, 3), func(values []int) string {
				var words []string
				for _, v := range values {
					words = append(words, strconv.Itoa(v))
				}
				return strings.Join(words, ",")
			}),
		)
	}
	steps := rapid.SampledFrom([]string{"*/2", "*/3", "*/5", "*/7"})
	day := rapid.OneOf(field(1, 31), steps, rapid.SampledFrom([]string{"L", "LW", "L-3", "15W", "1w,31w", "1-7,L", "?"}))
	weekday := rapid.OneOf(field(0, 6), field(0, 7), steps, rapid.SampledFrom([]string{"FRIL", "mon#2", "7L,3", "SAT-SUN", "5-7", "tue,SUN#1", "?"}))
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join([]string{
			rapid.OneOf(field(0, 59), steps).Draw(t, "minute"), rapid.OneOf(field(0, 23), steps).Draw(t, "hour"), day.Draw(t, "day"),
			field(1, 12).Draw(t, "month"), weekday.Draw(t, "weekday"),
		}, " ")
	}).Filter(func(spec string) bool {
		_, err := slots.Cron(spec, "")
		return err == nil
	})
}
