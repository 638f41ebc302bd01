package slots_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/slotlease/slotlease/internal/fuzzed" // properties draw from the seed of the run
	"github.com/slotlease/slotlease/slots"
)

// instants draws instants of 1970 to 2100, some of them near a change of the
// clocks of a zone, if it has any, and instants of all years that have slots.
func instants(t *rapid.T, loc *time.Location) time.Time {
	const first, last = 0, 4102444800
	second := rapid.Int64Range(first, last).Draw(t, "second")
	switch rapid.SampledFrom([]string{"in these years", "near a change", "in any year"}).Draw(t, "instant") {
	case "in any year":
		second = rapid.Int64Range(-62135596800, 253402300799).Draw(t, "second of any year")
	case "near a change":
		// The nearest change after the instant.
		if _, end := time.Unix(second, 0).In(loc).ZoneBounds(); !end.IsZero() && end.Unix() < last {
			second = max(end.Unix()+rapid.Int64Range(-30*3600, 30*3600).Draw(t, "seconds from the change"), first)
		}
	}
	return time.Unix(second, rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
}

// ends reports that the known years, and with them slots, begin or end near an instant.
func ends(at time.Time) bool { return at.Year() < 3 || at.Year() > 9997 }

// checkObservers checks that whoever asks, wherever and how often, sees the same
// slot.
func checkObservers(t *rapid.T, s slots.Schedule, at time.Time, there *time.Location) {
	again, err := slots.Parse(s.String())
	if err != nil {
		t.Fatalf("Parse(%q) = %v", s.String(), err)
	}
	if again.String() != s.String() {
		t.Fatalf("Parse(%q).String() = %q", s.String(), again.String())
	}
	slot := s.At(at)
	if slot.IsZero() && ends(at) {
		return
	}
	// Another observer in the same slot, in another place.
	other := slot.Start.Add(time.Duration(rapid.Int64Range(0, int64(slot.Length())-1).Draw(t, "other observer"))).In(there)
	if got := again.At(other); got != slot {
		t.Fatalf("%v: At(%v) = %v, want %v as at %v", s, other, got, slot, at)
	}
	if got, want := again.Next(other), s.Next(at); got != want {
		t.Fatalf("%v: Next(%v) = %v, want %v as at %v", s, other, got, want, at)
	}
}

func TestPropertyCronSlotsPartitionTimeInAllZones(t *testing.T) {
	zones := rapid.SampledFrom(zoneNames(t))
	rapid.Check(t, func(r *rapid.T) {
		name := zones.Draw(r, "zone")
		loc := zone(t, name)
		s, err := slots.Cron(specs().Draw(r, "spec"), name)
		if err != nil {
			r.Fatal(err)
		}
		at := instants(r, loc)
		checkPartition(t, s, at)
		checkGrid(t, s, at, 20)
		checkObservers(r, s, at, zone(t, zones.Draw(r, "zone of the other observer")))
	})
}

func TestPropertyIntervalsAreCountedFromTheAnchor(t *testing.T) {
	zones := rapid.SampledFrom(zoneNames(t))
	anchor := big.NewInt(time.Date(1970, time.January, 5, 0, 0, 0, 0, time.UTC).UnixMilli())
	rapid.Check(t, func(r *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(r, "unit")
		interval := min(max(unit*time.Duration(rapid.Int64Range(1, 100_000).Draw(r, "units")), slots.MinInterval), slots.MaxInterval)
		s, err := slots.Every(interval)
		if err != nil {
			r.Fatal(err)
		}
		at := instants(r, time.UTC)
		checkPartition(t, s, at)
		checkGrid(t, s, at, 20)
		checkObservers(r, s, at, zone(t, zones.Draw(r, "zone of the other observer")))
		// Euclidean division rounds down for whatever sign.
		length := big.NewInt(interval.Milliseconds())
		since := new(big.Int).Sub(big.NewInt(at.UnixMilli()), anchor)
		n := new(big.Int).Div(since, length)
		start := new(big.Int).Add(anchor, n.Mul(n, length)).Int64()
		if got, want := s.At(at), (slots.Slot{Start: time.UnixMilli(start).UTC(), End: time.UnixMilli(start).UTC().Add(interval)}); got != want && (!got.IsZero() || !ends(at)) {
			r.Fatalf("%v: At(%v) = %v, want %v", s, at, got, want)
		}
	})
}

// A gap fires what it skipped at its end, and a doubled hour fires in its first
// pass, or in both for a spec that fires in every hour: as a local clock that is
// played shows it, at any change of any zone.
func TestPropertyFiringsFollowALocalClockAtAnyChangeOfAnyZone(t *testing.T) {
	zones := rapid.OneOf(rapid.SampledFrom(odd), rapid.SampledFrom(zoneNames(t)))
	first, last := instant(t, "1970-01-01T00:00:00Z"), instant(t, "2100-01-01T00:00:00Z")
	rapid.Check(t, func(r *rapid.T) {
		name := zones.Draw(r, "zone")
		loc := zone(t, name)
		found := append(changes(loc, first, last), instant(t, "2096-12-31T00:00:00Z"))
		change := rapid.SampledFrom(found).Draw(r, "change")
		from := change.Add(-time.Duration(rapid.IntRange(0, 24*60).Draw(r, "minutes before")) * time.Minute)
		step, lead, length := time.Minute, 26*time.Hour, 36*time.Hour
		if changesBySeconds(loc, change) {
			step, lead, length, from = time.Second, 2*time.Hour, 3*time.Hour, change.Add(-time.Hour)
		}
		compareFirings(t, specs().Draw(r, "spec"), name, from, from.Add(length), lead, step)
	})
}

// changesBySeconds reports whether an offset of a zone near a change is no whole
// minutes, so that the local clock can't be played by minutes.
func changesBySeconds(loc *time.Location, change time.Time) bool {
	for d := -48 * time.Hour; d <= 48*time.Hour; d += time.Hour {
		if _, offset := change.Add(d).In(loc).Zone(); offset%60 != 0 {
			return true
		}
	}
	return false
}
