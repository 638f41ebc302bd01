package slots

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTheLongestGapIsThatOfAWalkThroughTheCalendar goes from day to day,
// where longestGap looks at each kind of year once.
func TestTheLongestGapIsThatOfAWalkThroughTheCalendar(t *testing.T) {
	for _, spec := range []string{
		"0 0 * * *", "0 0 1 1 *", "0 0 31 12 *", "0 0 31 * *", "0 0 28 2 0", "0 0 * 2 6", "0 0 31 1 *", "30 12 1-7 * 1", "0 0 * 1,12 1",
	} {
		f, err := parseFields(spec)
		if err != nil {
			t.Fatalf("parseFields(%q) = %v", spec, err)
		}
		checkLongestGap(t, spec, f)
	}
	// No schedules, as one slot would be too long.
	checkLongestGap(t, "29 February", fields{minute: 1, hour: 1, day: 1 << 29, month: 1 << 2})
	checkLongestGap(t, "Sunday, 29 February", fields{minute: 1, hour: 1, day: 1 << 29, month: 1 << 2, weekday: 1, bothDays: true})

	r := rand.New(rand.NewPCG(20, 26))
	for range 20 {
		f := fields{
			minute: 1, hour: 1, day: r.Uint64N(1<<31) << 1 & r.Uint64(), month: (r.Uint64N(1<<12)<<1)&r.Uint64() | 1<<2,
			weekday: r.Uint64N(1<<7) & r.Uint64(), bothDays: r.IntN(2) == 0,
		}
		checkLongestGap(t, "at random", f)
	}
}

func checkLongestGap(t *testing.T, name string, f fields) {
	t.Helper()
	var want, first, last int64
	found := false
	for day := range int64(calendarDays) {
		_, month, d := dateOf(day)
		weekday := time.Unix(day*daySeconds, 0).UTC().Weekday()
		byDay, byWeekday := f.day>>d&1 == 1, f.weekday>>weekday&1 == 1
		switch {
		case f.month>>month&1 == 0, !byDay && !byWeekday, f.bothDays && byDay != byWeekday:
			continue
		case found:
			want = max(want, day-last)
		default:
			found, first = true, day
		}
		last = day
	}
	if found {
		want = max(want, first+calendarDays-last)
	}
	if got, ok := f.longestGap(); ok != found || got != want && found {
		t.Errorf("%s, %+v: longestGap() = %d, %t, want %d, %t", name, f, got, ok, want, found)
	}
}
