package slots_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/slots"
)

// composed is a schedule of several parts, and what the test knows of it.
type composed struct {
	parts  []slots.Schedule
	except [][2]string // first and last date of successive ones
	spread time.Duration
	name   string
}

func (c composed) schedule() (slots.Schedule, error) {
	s, err := slots.Join(c.parts...)
	if err != nil {
		return nil, err
	}
	var dates []string
	for _, d := range c.except {
		dates = append(dates, d[0]+".."+d[1])
	}
	if s, err = slots.Except(s, dates...); err != nil || c.spread == 0 {
		return s, err
	}
	return slots.Spread(s, c.spread, c.name)
}

// boundaries are those in (from, to] by the plainest rules: all of the parts', but for those on the dates, each
// later by the place.
func (c composed) boundaries(from, to time.Time, later time.Duration) []time.Time {
	found := map[time.Time]bool{}
	for _, part := range c.parts {
		for slot := range slots.Upcoming(part, from.Add(-later)) {
			date := slot.Start.In(slots.Location(part)).Format(time.DateOnly)
			if slot.Start.After(to.Add(-later)) {
				break
			}
			if !slices.ContainsFunc(c.except, func(d [2]string) bool { return d[0] <= date && date <= d[1] }) {
				found[slot.Start.Add(later)] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), time.Time.Compare)
}

// composeds draws schedules of parts that are near an instant.
func composeds(t *rapid.T, zones []string, near time.Time) composed {
	part := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) slots.Schedule {
			zone := rapid.SampledFrom(zones).Draw(t, "zone")
			s, err := slots.Cron(specs().Draw(t, "spec"), zone)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}),
		rapid.Custom(func(t *rapid.T) slots.Schedule {
			unit := rapid.SampledFrom([]time.Duration{30 * time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "unit")
			interval := unit * time.Duration(rapid.Int64Range(1, 300).Draw(t, "units"))
			s, err := slots.EveryFrom(interval, time.Duration(rapid.Int64Range(-1000, 1000).Draw(t, "from"))*unit/2)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}),
	)
	c := composed{parts: rapid.SliceOfN(part, 1, 3).Draw(t, "parts")}
	for range rapid.IntRange(0, 3).Draw(t, "dates") {
		first := near.AddDate(0, 0, rapid.IntRange(-3, 3).Draw(t, "date"))
		last := first.AddDate(0, 0, rapid.IntRange(0, 5).Draw(t, "more days"))
		c.except = append(c.except, [2]string{first.Format(time.DateOnly), last.Format(time.DateOnly)})
	}
	if rapid.Bool().Draw(t, "is spread") {
		c.spread, c.name = time.Duration(rapid.Int64Range(1, 30_000).Draw(t, "within"))*time.Millisecond, rapid.StringMatching(`[a-z]{1,9}`).Draw(t, "name")
	}
	return c
}

func TestPropertyComposedSlotsPartitionTime(t *testing.T) {
	zones := zoneNames(t)
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.OneOf(rapid.SampledFrom(odd), rapid.SampledFrom(zones)).Draw(r, "zone")
		at := instants(r, zone(t, name))
		if ends(at) || at.Year() > 9000 {
			r.Skip("no room for dates")
		}
		c := composeds(r, []string{name, name, rapid.SampledFrom(odd).Draw(r, "another zone")}, at)
		s, err := c.schedule()
		if err != nil {
			if why := err.Error(); !strings.Contains(why, "more than 366 days") && !strings.Contains(why, "shortest slot") && !strings.Contains(why, "at most 512") {
				r.Fatalf("%+v: %v", c, err)
			}
			return
		}
		checkPartition(t, s, at)
		checkGrid(t, s, at, 10)
		checkObservers(r, s, at, zone(t, name))
		if err := slots.Check(s, at); err != nil {
			r.Fatalf("%v: %v", s, err)
		}
		_, later := slots.Unshifted(s)
		if (later != 0) != strings.Contains(s.String(), " shifted ") || later < 0 || c.spread > 0 && later >= c.spread {
			r.Fatalf("%v: is later by %v, want less than %v", s, later, c.spread)
		}
		from, to := at.Add(-30*time.Hour), at.Add(30*time.Hour)
		if got, want := upcoming(s, from, to), c.boundaries(from, to, later); !slices.EqualFunc(got, want, time.Time.Equal) {
			r.Fatalf("%v: slots from %v to %v start at\n%v, want\n%v", s, from, to, got, want)
		}
	})
}

func TestComposedSchedulesHaveOneText(t *testing.T) {
	for text, want := range map[string]string{
		"cron 0 12 * * 6 + cron 0 2 * * 1-5":                                    "cron 0 12 * * 6 + cron 0 2 * * 1-5",
		"cron 0 2 * * 1-5  +  cron 0 12 * * 6":                                  "cron 0 12 * * 6 + cron 0 2 * * 1-5",
		"every 90m + every 5400s":                                               "every 1h30m",
		"every 7m + cron 0 2 * * * Europe/Berlin + every 5m":                    "cron 0 2 * * * Europe/Berlin + every 5m + every 7m",
		"cron 0 2 * * * except 2026-12-25":                                      "cron 0 2 * * * except 2026-12-25",
		"cron 0 2 * * * except 2026-12-26,2026-12-25,2026-12-25,2026-01-01":     "cron 0 2 * * * except 2026-01-01,2026-12-25..2026-12-26",
		"every 1h except 2026-12-20..2026-12-24,2026-12-22..2026-12-31":         "every 1h except 2026-12-20..2026-12-31",
		"cron @hourly + cron 30 2 * * * except 2026-12-25 shifted 90s":          "cron 30 2 * * * + cron @hourly except 2026-12-25 shifted 1m30s",
		"every 1h from 00:10 shifted 0s":                                        "every 1h from 00:10",
		"cron 0 2 * * * UTC shifted 7m21.482s":                                  "cron 0 2 * * * shifted 7m21.482s",
		"cron 0 2 * * * Etc/GMT+5 + cron 0 3 * * * Etc/GMT+5 except 2026-12-25": "cron 0 2 * * * Etc/GMT+5 + cron 0 3 * * * Etc/GMT+5 except 2026-12-25",
	} {
		s, err := slots.Parse(text)
		if err != nil || s.String() != want {
			t.Errorf("Parse(%q) = %v, %v, want %q", text, s, err, want)
		} else if again, err := slots.Parse(want); err != nil || again.String() != want {
			t.Errorf("Parse(%q) = %v, %v, want the same text again", want, again, err)
		}
	}
}

func TestComposingRefuses(t *testing.T) {
	daily, weekly := slots.Must(slots.Cron("0 2 * * *", "")), slots.Must(slots.Cron("0 12 * * 6", ""))
	without := slots.Must(slots.Except(daily, "2026-12-25"))
	spread := slots.Must(slots.Spread(daily, time.Hour, "report"))
	var many []slots.Schedule
	for m := range 60 {
		many = append(many, slots.Must(slots.Cron(fmt.Sprintf("%d 2 * * *", m), "")))
	}
	parse := func(text string) error { _, err := slots.Parse(text); return err }
	join := func(s ...slots.Schedule) error { _, err := slots.Join(s...); return err }
	except := func(s slots.Schedule, dates ...string) error { _, err := slots.Except(s, dates...); return err }
	spreadBy := func(s slots.Schedule, d time.Duration, name string) error {
		_, err := slots.Spread(s, d, name)
		return err
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{join(), "no schedule is given"},
		{join(daily, nil), "a schedule is nil"},
		{join(daily, without), "join those first, then leave out dates, then spread"},
		{join(weekly, spread), "join those first"},
		{join(stuck{daily}, daily), "no interval and no cron schedule"},
		{join(many...), "the text has 1067 bytes, at most 512 are allowed"},
		{parse("every 250ms + every 150ms"), `boundaries of "every 150ms" and "every 250ms" may be 50ms apart, at least 100ms are needed`},
		{parse("every 1h from 00:00:00.05 + cron @hourly"), "may be 50ms apart"},
		{except(daily, "2026-13-01", "2026-12-25", "25.12.2026"), "except \"2026-13-01\": not a date such as 2026-12-25, or dates such as 2026-12-24..2026-12-26\nexcept \"25.12.2026\": not a date"},
		{except(daily, "2026-12-26..2026-12-25"), "the first date is after the last one"},
		{except(daily, "2026-01-01..2027-06-01"), "except 2026-01-01..2027-06-01: a slot would last more than 366 days"},
		{except(slots.Must(slots.Cron("@yearly", "")), "2026-01-01"), "except 2026-01-01: a slot would last more than 366 days"},
		{except(spread, "2026-12-25"), "then spread"},
		{except(stuck{daily}, "2026-12-25"), "no interval and no cron schedule"},
		{spreadBy(daily, time.Hour, ""), "the name of the job is empty"},
		{spreadBy(daily, 0, "report"), "spread 0s: want at least 1ms, and at most the shortest slot (24h)"},
		{spreadBy(daily, 24*time.Hour+1, "report"), "at most the shortest slot (24h)"},
		{spreadBy(spread, time.Hour, "report"), "is shifted already"},
		{parse("every 5m shifted"), "want"},
		{parse("every 5m shifted 5"), `shifted "5": not a duration`},
		{parse("every 5m shifted -1s"), "shifted -1s: want whole milliseconds"},
		{parse("every 5m shifted 1s shifted 2s"), "want"},
		{parse("every 5m except"), "want"},
		{parse("every 5m except 2026-12-25,"), `except ""`},
		{parse("every 5m shifted 1s except 2026-12-25"), "want"},
		{parse("+ every 5m"), "want"},
		{parse("every 5m +"), "want"},
		{parse("every 5m + + every 7m"), "want"},
		{parse("shifted 5m"), "want"},
		{parse("except 2026-12-25"), "want"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want it to say %q", c.err, c.want)
		}
	}
}

// A date is that of the zone of the spec, and the slot before it goes on.
func TestExceptLeavesOutLocalDates(t *testing.T) {
	s := schedule(t, "cron 30 0,12 * * * Asia/Tokyo except 2026-12-25")
	start, end := instant(t, "2026-12-24T03:30:00Z"), instant(t, "2026-12-25T15:30:00Z")
	if got, want := s.At(instant(t, "2026-12-25T00:00:00Z")), (slots.Slot{Start: start, End: end}); got != want {
		t.Errorf("%v: %v, want %v", s, got, want)
	}
}

// The place of a name is the same on all machines and in all versions. These were worked out by another program.
func TestThePlaceOfANameNeverChanges(t *testing.T) {
	for _, c := range []struct {
		name                   string
		ofTenMinutes, ofAnHour time.Duration // in milliseconds
	}{
		{"report", 97564, 2497564},
		{"invoice-export", 239359, 839359},
		{"a", 162250, 162250},
		{"job-0001", 5863, 1205863},
		{"job-0002", 294010, 2694010},
		{"nightly.backup_eu", 374836, 1574836},
	} {
		s := schedule(t, "cron 0 2 * * * Europe/Berlin + every 6h")
		_, ten := slots.Unshifted(slots.Must(slots.Spread(s, 10*time.Minute, c.name)))
		_, hour := slots.Unshifted(slots.Must(slots.Spread(s, time.Hour, c.name)))
		if ten != c.ofTenMinutes*time.Millisecond || hour != c.ofAnHour*time.Millisecond {
			t.Errorf("the places of %q are %v of ten minutes and %v of an hour, want %v and %v ms", c.name, ten, hour, c.ofTenMinutes, c.ofAnHour)
		}
	}
}

// A thousand hourly jobs begin in one second, or at most twenty of them if they are spread over ten minutes.
func TestSpreadLowersThePeak(t *testing.T) {
	peak := func(spread time.Duration) int {
		began := map[int64]int{}
		for i := range 1000 {
			s := schedule(t, "cron @hourly")
			if spread > 0 {
				s = slots.Must(slots.Spread(s, spread, fmt.Sprintf("job-%d", i)))
			}
			slot := s.Next(instant(t, "2026-03-01T00:30:00Z"))
			if late := slot.Start.Sub(instant(t, "2026-03-01T01:00:00Z")); late < 0 || late > spread || slot.Length() != time.Hour {
				t.Fatalf("%v: %v, want it to begin within %v", s, slot, spread)
			}
			began[slot.Start.Unix()]++
		}
		return slices.Max(slices.Collect(maps.Values(began)))
	}
	if before, after := peak(0), peak(10*time.Minute); before != 1000 || before < 50*after {
		t.Errorf("%d jobs begin in one second, and %d if they are spread, want a fiftieth", before, after)
	}
}

// In Berlin the clocks go from 02:00 to 03:00 on 2026-03-29: the place is elapsed time after the firing.
func TestSpreadPassesAsElapsedTimeWhereClocksChange(t *testing.T) {
	s := schedule(t, "cron 30 1,2 * * * Europe/Berlin shifted 45m")
	want := []time.Time{instant(t, "2026-03-29T01:15:00Z"), instant(t, "2026-03-29T01:45:00Z"), instant(t, "2026-03-30T00:15:00Z")}
	if got := upcoming(s, instant(t, "2026-03-29T00:30:00Z"), instant(t, "2026-03-30T01:00:00Z")); !slices.EqualFunc(got[:2], want[:2], time.Time.Equal) {
		t.Errorf("%v: %v, want %v", s, got, want)
	}
	if got := slots.Location(s).String(); got != "Europe/Berlin" {
		t.Errorf("Location(%v) = %s, want the zone of the spec", s, got)
	}
}

func TestLocationIsTheOneZoneOfAllParts(t *testing.T) {
	for text, want := range map[string]string{
		"cron 0 2 * * * Asia/Tokyo + cron 0 3 * * 6 Asia/Tokyo except 2026-12-25": "Asia/Tokyo",
		"cron 0 2 * * * Asia/Tokyo + cron 0 3 * * 6":                              "UTC",
		"every 1h + every 7m": "UTC",
	} {
		if got := slots.Location(schedule(t, text)).String(); got != want {
			t.Errorf("Location(%s) = %s, want %s", text, got, want)
		}
	}
}
