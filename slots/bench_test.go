package slots_test

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
)

func BenchmarkEveryAt(b *testing.B) {
	s := schedule(b, "every 5m")
	at := instant(b, "2025-06-15T12:34:56Z")
	b.ReportAllocs()
	for b.Loop() {
		at = s.At(at).End
	}
}

// cronCases range from dense to the sparsest that is allowed, and from a zone
// without changes to one with many.
var cronCases = []string{
	"cron */5 * * * *", "cron */5 * * * * Europe/Berlin", "cron 30 2 * * * Europe/Berlin", "cron @yearly", "cron @yearly Europe/Berlin",
	"cron 30 2 1 7 * Africa/Casablanca", "cron 0 0 LW 12 FRIL", "cron 0 2 * * * Europe/Berlin + every 7m except 2025-06-20..2025-06-30 shifted 7m21.482s",
	"every 100ms except 2025-01-01..2025-12-31",
}

func BenchmarkCronSlots(b *testing.B) {
	for _, text := range cronCases {
		s := schedule(b, text)
		for name, find := range map[string]func(time.Time) slots.Slot{"At": s.At, "Next": s.Next} {
			b.Run(name+" "+text, func(b *testing.B) {
				at := instant(b, "2025-06-15T12:34:56Z")
				b.ReportAllocs()
				for b.Loop() {
					find(at)
				}
			})
		}
	}
}

func BenchmarkCron(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		slots.Must(slots.Cron("30 2 * * 1-5", "Europe/Berlin"))
	}
}

func TestLookingFarBackIsCheap(t *testing.T) {
	suites.RealTime(t)
	if testing.Short() {
		t.Skip("measures time")
	}
	at := instant(t, "2025-06-30T00:00:00Z")
	for _, text := range cronCases {
		s := schedule(t, text)
		best := time.Hour
		for range 20 {
			begun := time.Now()
			for range 10 {
				s.At(at)
				s.Next(at)
			}
			best = min(best, time.Since(begun)/10)
		}
		if best > 500*time.Microsecond {
			t.Errorf("%v: At and Next took %v, want some microseconds", s, best)
		}
	}
}
