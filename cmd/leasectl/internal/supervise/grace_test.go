package supervise

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// noon is a boundary of all schedules here.
var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// pacingOf is the pacing of options with slots of a length.
func pacingOf(t *testing.T, o workerlease.Options, length, grace time.Duration) pacing {
	t.Helper()
	o.WorkerType, o.LeaseInterval = "t", length
	timing, err := o.Timing()
	must(t, err)
	return pacing{timing, grace}
}

func TestACommandIsToldToEndInTimeAndNotTooEarly(t *testing.T) {
	const ms = time.Millisecond
	type options = workerlease.Options
	slot := slots.Slot{Start: noon, End: noon.Add(5 * time.Minute)}
	part, last := noon.Add(time.Minute), slot.End
	rotating := options{Continuous: true, Priority: 6, TieBreak: priority.Rotate}
	for _, c := range []struct {
		options
		given                    time.Duration // --stop-grace
		expiry                   time.Time
		left                     time.Duration
		grace, notice, dueAtEnds time.Duration
	}{
		// Nothing is extended: SIGTERM comes a grace before the end, a twentieth of the
		// lease.
		{options{}, 0, last, 5 * time.Minute, 5 * time.Second, 5 * time.Second, 0},
		{options{}, 0, last, 8 * time.Second, 400 * ms, 400 * ms, 0},
		{options{}, time.Minute, last, 8 * time.Second, time.Minute, time.Minute, 0},
		// A part of a slot: less than a quarter of the quarter in which it is extended.
		{options{FailoverWithin: time.Minute}, 0, part, 45 * time.Second, 3 * time.Second, 3 * time.Second, 15 * time.Second},
		{options{FailoverWithin: 2 * time.Second}, 0, part, 1200 * ms, 100 * ms, 100 * ms, 500 * ms},
		{options{FailoverWithin: 80 * ms}, 0, part, 60 * ms, 4 * ms, 4 * ms, 20 * ms},
		{options{FailoverWithin: 2 * time.Second}, 100 * ms, part, 1200 * ms, 100 * ms, 100 * ms, 500 * ms},
		{options{FailoverWithin: 2 * time.Second}, 500 * ms, part, 1200 * ms, 500 * ms, 125 * ms, 500 * ms},
		{options{FailoverWithin: time.Minute}, 15 * time.Second, part, 45 * time.Second, 15 * time.Second, 3750 * ms, 15 * time.Second},
		{options{FailoverWithin: time.Hour}, 0, part, 45 * time.Minute, 5 * time.Second, 5 * time.Second, 5 * time.Minute},
		// The last part of a slot is not extended, but with Continuous.
		{options{FailoverWithin: time.Minute}, 0, last, 24 * time.Second, 3 * time.Second, 3 * time.Second, 0},
		{options{FailoverWithin: time.Minute}, 0, last, 8 * time.Second, 3 * time.Second, 2 * time.Second, 0},
		{options{FailoverWithin: time.Minute}, 9 * time.Second, last, 24 * time.Second, 9 * time.Second, 9 * time.Second, 0},
		{options{FailoverWithin: time.Minute, Continuous: true}, 0, part, 45 * time.Second, 3 * time.Second, 3 * time.Second, 15 * time.Second},
		{options{FailoverWithin: time.Minute, Continuous: true}, 0, last, 24 * time.Second, 3 * time.Second, 2500 * ms, 10 * time.Second},
		{options{FailoverWithin: 4 * time.Second, Continuous: true}, 0, last, 3 * time.Second, 200 * ms, 200 * ms, 2 * time.Second},
		// A boundary: a quarter of what is left when one's turn has come.
		{options{Continuous: true}, 0, last, 5 * time.Minute, 5 * time.Second, 2500 * ms, 10 * time.Second},
		{options{Continuous: true, Lead: 36 * time.Second}, 0, last, 5 * time.Minute, 5 * time.Second, 5 * time.Second, 36 * time.Second},
		{options{Continuous: true, Lead: 36 * time.Second}, 10 * time.Second, last, 5 * time.Minute, 10 * time.Second, 9 * time.Second, 36 * time.Second},
		{options{Continuous: true, Lead: 36 * time.Second, Priority: 7}, 0, last, 5 * time.Minute, 5 * time.Second, 2 * time.Second, 8 * time.Second},
		{options{Continuous: true, NoFailback: true, Priority: 7}, 0, last, 5 * time.Minute, 5 * time.Second, 2500 * ms, 10 * time.Second},
		{rotating, 0, last, 5 * time.Minute, 5 * time.Second, pacingOf(t, rotating, time.Hour, 0).ExtendsBefore(slot, last) / 4, -1},
	} {
		t.Run(fmt.Sprintf("%+v, grace %v until %v", c.options, c.given, c.expiry.Sub(noon)), func(t *testing.T) {
			p := pacingOf(t, c.options, 2*time.Hour, c.given)
			l := workerlease.Lease{Slot: slot, Expiry: c.expiry}
			grace := p.graceOf(l, c.left)
			if grace != c.grace {
				t.Errorf("graceOf() = %v, want %v", grace, c.grace)
			}
			if got := p.noticeOf(l, c.left, grace); got != c.notice {
				t.Errorf("noticeOf() = %v, want %v", got, c.notice)
			}
			if due := p.ExtendsBefore(l.Slot, l.Expiry); due != c.dueAtEnds && c.dueAtEnds >= 0 {
				t.Errorf("ExtendsBefore() = %v, want %v", due, c.dueAtEnds)
			}
		})
	}
}

// Less than 2 % of a slot of 5 min is lost to SIGTERM, the margin and killing.
func TestTheCommandHasNearlyAllOfItsLease(t *testing.T) {
	p := pacingOf(t, workerlease.Options{}, 5*time.Minute, 0)
	l := workerlease.Lease{Slot: slots.Slot{Start: noon, End: noon.Add(5 * time.Minute)}, Expiry: noon.Add(5 * time.Minute)}
	left := 5*time.Minute - p.Options.Margin
	lost := p.Options.Margin + killTime(left) + p.noticeOf(l, left, p.graceOf(l, left))
	if lost > 6*time.Second {
		t.Errorf("the command loses %v of 5 min, want at most 2 %%", lost)
	}
}

// However slow the store is, a turn comes before three quarters of the time for it
// have passed, and the notice is no longer than the grace.
func TestATurnComesBeforeTheNotice(t *testing.T) {
	for _, length := range []time.Duration{100 * time.Millisecond, time.Second, time.Minute, 24 * time.Hour} {
		slot := slots.Slot{Start: noon, End: noon.Add(length)}
		l := workerlease.Lease{Slot: slot, Expiry: slot.End}
		for p := range 8 {
			for _, tie := range []priority.TieBreak{priority.Sticky, priority.Rotate, priority.Random} {
				for _, lead := range []time.Duration{0, 10 * time.Millisecond, time.Minute} {
					o := workerlease.Options{Continuous: true, Priority: p, TieBreak: tie, Lead: lead}
					pace := pacingOf(t, o, length, 0)
					grace := pace.graceOf(l, length)
					notice := pace.noticeOf(l, length, grace)
					if notice <= 0 || notice > grace {
						t.Errorf("slots of %v, %+v: notice %v, want more than nothing and at most the grace, %v", length, o, notice, grace)
					}
					for _, spread := range []time.Duration{0, time.Millisecond, time.Hour} {
						turns := pace.Turns(pace.LeadAfter(length), spread)
						turn := turns.Lead - turns.Offset(p, tie, true, 1<<64-1)
						if turn/4 < notice {
							t.Errorf("slots of %v, %+v: the turn comes %v before the boundary, the notice %v", length, o, turn, notice)
						}
					}
				}
			}
		}
	}
}
