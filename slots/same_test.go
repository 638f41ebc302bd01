package slots_test

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
)

func TestSameComparesSlotsAndNotTexts(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) // a Monday
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"cron * * * * *", "cron */1 * * * *", true},
		{"cron * * * * *", "every 1m", true},
		{"cron 0 2 * * *", "cron 0 2 * * 0-6", true},
		{"cron 0 2 * * *", "cron 0 2 * * 1-5", false},              // on Saturday
		{"cron 0 2 * * * Europe/Berlin", "cron 0 1 * * *", false},  // in summer
		{"cron 30 0 * * * Africa/Lagos", "cron 30 23 * * *", true}, // has no summer time
		{"every 5m", "every 10m", false},
	} {
		if got := slots.Same(slots.Must(slots.Parse(c.a)), slots.Must(slots.Parse(c.b)), at); got != c.want {
			t.Errorf("Same(%s, %s) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestLocationIsTheZoneOfACronSpec(t *testing.T) {
	for text, want := range map[string]string{"every 5m": "UTC", "cron 0 2 * * *": "UTC", "cron 0 2 * * * Europe/Berlin": "Europe/Berlin"} {
		if got := slots.Location(slots.Must(slots.Parse(text))).String(); got != want {
			t.Errorf("Location(%s) = %s, want %s", text, got, want)
		}
	}
}
