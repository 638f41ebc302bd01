package gap_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/gap"
)

func TestSlotsBetween(t *testing.T) {
	at := func(text string) time.Time {
		moment, err := time.Parse("15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return moment.AddDate(2026, 2, 2)
	}
	schedule := slots.Must(slots.Every(5 * time.Minute))
	for _, c := range []struct{ since, until, want string }{
		{"12:00", "12:15", "12:00 12:05 12:10"},
		{"12:01", "12:15", "12:05 12:10"},
		{"12:00", "12:14", "12:00 12:05"},
		{"12:01", "12:09", ""},
		{"12:00", "12:00", ""},
		{"12:10", "12:00", ""},
	} {
		var got []string
		for s := range gap.Slots(schedule, at(c.since), at(c.until)) {
			got = append(got, s.Start.Format("15:04"))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("Slots(%s, %s) = %q, want %q", c.since, c.until, text, c.want)
		}
	}
}

// standing is a foreign schedule that doesn't advance.
type standing struct{ slots.Schedule }

func (s standing) Next(t time.Time) slots.Slot { return s.At(t) }
func (standing) String() string                { return "standing" }

func TestAScheduleThatDoesNotAdvanceEnds(t *testing.T) {
	noon := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	n := 0
	for range gap.Slots(standing{slots.Must(slots.Every(time.Minute))}, noon, noon.Add(time.Hour)) {
		n++
	}
	if n != 1 {
		t.Errorf("Slots() of a schedule that stands still has %d, want 1", n)
	}
}
