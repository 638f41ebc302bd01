package machine

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/slots"
)

// A holder that extends its window each time has all of the slot, before claims for
// the next one open; and whenever it dies, its window ends within Failover, or at
// the end of the slot.
func TestPropertyWindowsCutASlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.Int64Range(100, 7*24*3600*1000).Draw(t, "interval ms")) * time.Millisecond
		least := MinFailover(10 * time.Millisecond)
		if interval/2 < least {
			t.Skip("too short")
		}
		c := Config{
			Schedule: slots.Must(slots.Every(interval)),
			Failover: time.Duration(rapid.Int64Range(int64(least), int64(interval/2)).Draw(t, "failover")),
			Lead:     time.Duration(rapid.Int64Range(0, int64(5*time.Minute)).Draw(t, "lead")),
		}
		slot := c.Schedule.At(time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0))
		open := slot.End.Add(-c.lead(c.Schedule.Next(slot.Start)))
		from := slot.Start.Add(time.Duration(rapid.Int64Range(0, int64(slot.Length())-1).Draw(t, "from"))).Truncate(time.Millisecond)
		for i := 0; i < 100 && from.Before(slot.End); i++ {
			end := c.windowEnd(slot, from)
			switch {
			case !end.After(from) || end.After(slot.End):
				t.Fatalf("a window from %v ends at %v, in %v", from, end, slot)
			case !end.Equal(end.Truncate(time.Millisecond)):
				t.Fatalf("a window ends at %v: not a whole millisecond", end)
			case i > 0 && !end.Equal(slot.End) && end.Sub(from) > c.Failover-c.early()+time.Millisecond:
				t.Fatalf("a window of %v, with a failover of %v and extensions %v early", end.Sub(from), c.Failover, c.early())
			case !end.Equal(slot.End) && end.Sub(from) > c.Failover+time.Millisecond:
				t.Fatalf("the first window is %v long, with a failover of %v", end.Sub(from), c.Failover)
			case !end.Equal(slot.End) && end.Add(-c.early()).Before(from.Add(-time.Millisecond)):
				t.Fatalf("a window of %v is to be extended %v before its end", end.Sub(from), c.early())
			case !end.Equal(slot.End) && !end.Add(-c.early()).Before(open):
				t.Fatalf("the window to %v is extended when claims for the next slot are open, from %v on", end, open)
			}
			from = end
		}
	})
}
