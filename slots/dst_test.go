package slots_test

import (
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
)

// zone loads a time zone.
func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestCronWhenTheClocksChange(t *testing.T) {
	for _, c := range []struct {
		name       string
		spec, zone string
		from       string // in local time, as want
		want       []string
	}{
		{
			"a daily time in the missing hour fires at its end",
			"30 2 * * *", "Europe/Berlin", "2025-03-29T00:00:00+01:00",
			[]string{"03-29 02:30:00 +0100", "03-30 03:00:00 +0200", "03-31 02:30:00 +0200"},
		},
		{
			"a daily time in the doubled hour fires in the first pass",
			"30 2 * * *", "Europe/Berlin", "2025-10-25T00:00:00+02:00",
			[]string{"10-25 02:30:00 +0200", "10-26 02:30:00 +0200", "10-27 02:30:00 +0100"},
		},
		{
			"a spec for every hour goes on through the doubled hour",
			"*/30 * * * *", "Europe/Berlin", "2025-10-26T01:59:00+02:00",
			[]string{"10-26 02:00:00 +0200", "10-26 02:30:00 +0200", "10-26 02:00:00 +0100", "10-26 02:30:00 +0100", "10-26 03:00:00 +0100"},
		},
		{
			"a spec for some hours counts the doubled hour once",
			"*/30 0-5 * * *", "Europe/Berlin", "2025-10-26T01:59:00+02:00",
			[]string{"10-26 02:00:00 +0200", "10-26 02:30:00 +0200", "10-26 03:00:00 +0100"},
		},
		{
			"a spec for every hour goes on over the missing hour",
			"*/30 * * * *", "Europe/Berlin", "2025-03-30T01:00:00+01:00",
			[]string{"03-30 01:30:00 +0100", "03-30 03:00:00 +0200", "03-30 03:30:00 +0200"},
		},
		{
			"once an hour makes up for nothing",
			"45 * * * *", "Europe/Berlin", "2025-03-30T01:00:00+01:00",
			[]string{"03-30 01:45:00 +0100", "03-30 03:45:00 +0200"},
		},
		{
			"several missing times are made up for together",
			"*/20 2 * * *", "Europe/Berlin", "2025-03-29T02:30:00+01:00",
			[]string{"03-29 02:40:00 +0100", "03-30 03:00:00 +0200", "03-31 02:00:00 +0200"},
		},
		{
			"made up for at an instant that fires anyway",
			"0 2,3 * * *", "Europe/Berlin", "2025-03-30T00:00:00+01:00",
			[]string{"03-30 03:00:00 +0200", "03-31 02:00:00 +0200", "03-31 03:00:00 +0200"},
		},
		{
			"all hours spelled out are every hour",
			"0 0-23 * * *", "America/Los_Angeles", "2025-11-02T00:30:00-07:00",
			[]string{"11-02 01:00:00 -0700", "11-02 01:00:00 -0800", "11-02 02:00:00 -0800"},
		},
		{
			"a day of which robfig/cron skips the firing",
			"0 2 * * *", "America/Los_Angeles", "2025-03-08T12:00:00-08:00",
			[]string{"03-09 03:00:00 -0700", "03-10 02:00:00 -0700"},
		},
		{
			"a day on which robfig/cron fires twice",
			"30 1 * * *", "America/Los_Angeles", "2025-11-01T12:00:00-07:00",
			[]string{"11-02 01:30:00 -0700", "11-03 01:30:00 -0800"},
		},
		{
			"a missing midnight",
			"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00",
			[]string{"11-04 01:00:00 -0200", "11-05 00:00:00 -0200"},
		},
		{
			"a doubled midnight belongs to the day before",
			"0 0 * * *", "America/Havana", "2025-11-01T12:00:00-04:00",
			[]string{"11-02 00:00:00 -0400", "11-03 00:00:00 -0500"},
		},
		{
			"half an hour missing",
			"0,15,30 2 * * *", "Australia/Lord_Howe", "2025-10-04T12:00:00+10:30",
			[]string{"10-05 02:30:00 +1100", "10-06 02:00:00 +1100"},
		},
		{
			"half an hour doubled",
			"*/15 1 * * *", "Australia/Lord_Howe", "2025-04-06T01:20:00+11:00",
			[]string{"04-06 01:30:00 +1100", "04-06 01:45:00 +1100", "04-07 01:00:00 +1030"},
		},
		{
			"half an hour doubled for every hour",
			"*/15 * * * *", "Australia/Lord_Howe", "2025-04-06T01:20:00+11:00",
			[]string{"04-06 01:30:00 +1100", "04-06 01:45:00 +1100", "04-06 01:30:00 +1030", "04-06 01:45:00 +1030", "04-06 02:00:00 +1030"},
		},
		{
			"two hours missing",
			"30 1,2 * * *", "Antarctica/Troll", "2025-03-30T00:00:00+00:00",
			[]string{"03-30 03:00:00 +0200", "03-31 01:30:00 +0200"},
		},
		{
			"two hours doubled",
			"30 1,2 * * *", "Antarctica/Troll", "2025-10-26T00:00:00+02:00",
			[]string{"10-26 01:30:00 +0200", "10-26 02:30:00 +0200", "10-27 01:30:00 +0000"},
		},
		{
			"a missing day",
			"0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00-10:00",
			[]string{"12-29 12:00:00 -1000", "12-31 00:00:00 +1400", "12-31 12:00:00 +1400"},
		},
		{
			"a missing day with a spec for every hour",
			"0 * * * *", "Pacific/Apia", "2011-12-29T22:30:00-10:00",
			[]string{"12-29 23:00:00 -1000", "12-31 00:00:00 +1400", "12-31 01:00:00 +1400"},
		},
		{
			"a missing day that would have been the only one of the year",
			"15 * 30 12 *", "Pacific/Apia", "2010-12-30T23:00:00-10:00",
			// The slot of 2010 lasts the whole year.
			[]string{"12-30 23:15:00 -1000", "12-31 00:00:00 +1400", "12-30 00:15:00 +1400"},
		},
		{
			"the clock stops being ahead for Ramadan",
			"30 2 * * *", "Africa/Casablanca", "2025-02-22T12:00:00+01:00",
			[]string{"02-23 02:30:00 +0100", "02-24 02:30:00 +0000"},
		},
		{
			"the clock goes ahead again after Ramadan",
			"30 2 * * *", "Africa/Casablanca", "2025-04-05T12:00:00+00:00",
			[]string{"04-06 03:00:00 +0100", "04-07 02:30:00 +0100"},
		},
		{
			"an offset with seconds",
			"0 0 * * *", "Africa/Monrovia", "1972-01-05T12:00:00-00:44",
			// The clock went from 00:00:00 to 00:44:30.
			[]string{"01-06 00:00:00 -004430", "01-07 00:44:30 +0000", "01-08 00:00:00 +0000"},
		},
		{
			"local mean time",
			"0,1 0 * * *", "Europe/Brussels", "1892-04-30T12:00:00+00:17",
			// The clocks went back by 17 min 30 s, from 00:17:30 to 00:00:00.
			[]string{"05-01 00:00:00 +001730", "05-01 00:01:00 +001730", "05-02 00:00:00 +0000"},
		},
		{
			"the last day of a leap year, far ahead",
			"0 */12 * * *", "Europe/Berlin", "2040-12-30T13:00:00+01:00",
			[]string{"12-31 00:00:00 +0100", "12-31 12:00:00 +0100", "01-01 00:00:00 +0100"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			loc := zone(t, c.zone)
			s, err := slots.Cron(c.spec, c.zone)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for slot := range slots.Upcoming(s, instant(t, c.from)) {
				local := slot.Start.In(loc)
				layout := "01-02 15:04:05 -0700"
				if _, offset := local.Zone(); offset%60 != 0 {
					layout = "01-02 15:04:05 -070000"
				}
				if got = append(got, local.Format(layout)); len(got) == len(c.want) {
					break
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("Upcoming(%v, %s) = %q, want %q", s, c.from, got, c.want)
			}
		})
	}
}

func TestNoHoleInEveryFiveMinutes(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"} {
		s := schedule(t, "cron */5 * * * * "+name)
		year := instant(t, "2011-06-01T00:00:00Z")
		for slot := range slots.Upcoming(s, year) {
			if slot.Length() != 5*time.Minute {
				t.Fatalf("%v: %v lasts %v, want 5m", s, slot, slot.Length())
			}
			if slot.Start.After(year.AddDate(1, 0, 0)) {
				break
			}
		}
	}
}
