package slots_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/slots"
)

// grid is a schedule whose slots are the gaps between bounds, in Unix nanoseconds, which
// come again after each period.
type grid struct {
	bounds []int64 // from 0 to less than period, in order
	period int64
	next   func(slots.Slot) slots.Slot // changes what Next returns; may be nil
}

func (g grid) at(t time.Time) slots.Slot {
	ns := t.UnixNano()
	base := ns / g.period * g.period
	i, found := slices.BinarySearch(g.bounds, ns-base)
	if !found {
		i--
	}
	end := g.period
	if i+1 < len(g.bounds) {
		end = g.bounds[i+1]
	}
	return slots.Slot{Start: time.Unix(0, base+g.bounds[i]).UTC(), End: time.Unix(0, base+end).UTC()}
}

func (g grid) At(t time.Time) slots.Slot { return g.at(t) }

func (g grid) Next(t time.Time) slots.Slot {
	next := g.at(g.at(t).End)
	if g.next != nil {
		next = g.next(next)
	}
	return next
}

func (g grid) String() string { return "grid" }

func TestPropertyCheckPassesASchedulePreciselyIfItKeepsThePromises(t *testing.T) {
	near := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		g := grid{bounds: []int64{0}}
		for range rapid.IntRange(0, 4).Draw(t, "slots") {
			length := time.Duration(rapid.Int64Range(100, 400*24*3600*10).Draw(t, "ms")) * time.Millisecond
			g.bounds = append(g.bounds, g.bounds[len(g.bounds)-1]+int64(length))
		}
		g.period = g.bounds[len(g.bounds)-1] + int64(time.Hour)
		if err := slots.Check(g, near); err != nil {
			t.Fatalf("Check = %v, want none", err)
		}
		by := rapid.Int64Range(1, int64(2*time.Hour)).Draw(t, "off by")
		breaks := map[string]grid{
			"finer than a millisecond": {bounds: []int64{0, int64(time.Hour) + by%999_999 + 1}, period: int64(2 * time.Hour)},
			"too short":                {bounds: []int64{0}, period: int64(time.Duration(by%99+1) * time.Millisecond)},
			"too long":                 {bounds: []int64{0}, period: int64(slots.MaxInterval) + by/1_000_000*1_000_000 + 1_000_000},
			"overlapping": {bounds: g.bounds, period: g.period, next: func(s slots.Slot) slots.Slot {
				return slots.Slot{Start: s.Start.Add(time.Duration(-by)), End: s.End}
			}},
			"apart": {bounds: g.bounds, period: g.period, next: func(s slots.Slot) slots.Slot {
				return slots.Slot{Start: s.Start.Add(time.Duration(by)), End: s.End}
			}},
			"not increasing": {bounds: g.bounds, period: g.period, next: func(slots.Slot) slots.Slot { return g.at(near) }},
			"longer by Next": {bounds: g.bounds, period: g.period, next: func(s slots.Slot) slots.Slot {
				return slots.Slot{Start: s.Start, End: s.End.Add(time.Duration(by))}
			}},
			"none": {bounds: g.bounds, period: g.period, next: func(slots.Slot) slots.Slot { return slots.Slot{} }},
		}
		for name, broken := range breaks {
			if err := slots.Check(broken, near); err == nil {
				t.Fatalf("%s: Check = nil, want an error", name)
			}
		}
	})
}

// shifting is a schedule of five minutes that is right up to a time, and then is shifted,
// as one that forgets about daylight saving time may be.
type shifting struct {
	slots.Schedule
	from time.Time
}

func (s shifting) Next(t time.Time) slots.Slot {
	next := s.Schedule.Next(t)
	if next.Start.Before(s.from) {
		return next
	}
	return slots.Slot{Start: next.Start.Add(time.Hour), End: next.End.Add(time.Hour)}
}

func TestCheckLooksAYearAhead(t *testing.T) {
	near := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	s := shifting{slots.Must(slots.Every(5 * time.Minute)), near.AddDate(0, 11, 0)}
	if err := slots.Check(s, near); err == nil || !strings.Contains(err.Error(), "Next(2027-0") {
		t.Errorf("Check = %v, want an error about 2027", err)
	}
	if err := slots.Check(s.Schedule, near); err != nil {
		t.Errorf("Check = %v, want none", err)
	}
}

func TestCheckPassesCronInAllZones(t *testing.T) {
	for _, zone := range zoneNames(t) {
		for _, spec := range []string{"30 2 * * *", "*/10 * * * *", "0 0 29 12 *"} {
			if err := slots.Check(slots.Must(slots.Cron(spec, zone)), time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)); err != nil {
				t.Errorf("%s in %s: %v", spec, zone, err)
			}
		}
	}
}
