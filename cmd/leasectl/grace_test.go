package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

func TestACommandIsToldToEndInTimeAndNotTooEarly(t *testing.T) {
	const ms = time.Millisecond
	slot := slots.Slot{Start: noon, End: noon.Add(5 * time.Minute)}
	part, last := noon.Add(time.Minute), slot.End
	rotating := pacing{continuous: true, priority: 6, tieBreak: priority.Rotate}
	for _, c := range []struct {
		pacing
		expiry                   time.Time
		left                     time.Duration
		grace, notice, dueAtEnds time.Duration
	}{
		// Nothing is extended: SIGTERM comes a grace before the end.
		{pacing{}, last, 5 * time.Minute, 10 * time.Second, 10 * time.Second, 0},
		{pacing{}, last, 8 * time.Second, 2 * time.Second, 2 * time.Second, 0},
		{pacing{grace: time.Minute}, last, 8 * time.Second, time.Minute, time.Minute, 0},
		// A part of a slot: a quarter of the quarter in which it is extended.
		{pacing{failover: time.Minute}, part, 45 * time.Second, 10 * time.Second, 3750 * ms, 15 * time.Second},
		{pacing{failover: 2 * time.Second}, part, 1200 * ms, 500 * ms, 125 * ms, 500 * ms},
		{pacing{failover: 80 * ms}, part, 60 * ms, 20 * ms, 5 * ms, 20 * ms},
		{pacing{failover: 2 * time.Second, grace: 100 * ms}, part, 1200 * ms, 100 * ms, 100 * ms, 500 * ms},
		{pacing{failover: time.Hour}, part, 45 * time.Minute, 10 * time.Second, 10 * time.Second, 5 * time.Minute},
		// The last part of a slot is not extended, but with Continuous.
		{pacing{failover: time.Minute}, last, 24 * time.Second, 10 * time.Second, 6 * time.Second, 0},
		{pacing{failover: time.Minute, grace: 9 * time.Second}, last, 24 * time.Second, 9 * time.Second, 9 * time.Second, 0},
		{pacing{failover: time.Minute, continuous: true}, part, 45 * time.Second, 10 * time.Second, 3750 * ms, 15 * time.Second},
		{pacing{failover: time.Minute, continuous: true}, last, 24 * time.Second, 10 * time.Second, 2500 * ms, 10 * time.Second},
		{pacing{failover: 4 * time.Second, continuous: true}, last, 3 * time.Second, time.Second, 500 * ms, 2 * time.Second},
		// A boundary: a quarter of what is left when one's turn has come.
		{pacing{continuous: true}, last, 5 * time.Minute, 10 * time.Second, 2500 * ms, 10 * time.Second},
		{pacing{continuous: true, lead: 36 * time.Second}, last, 5 * time.Minute, 10 * time.Second, 9 * time.Second, 36 * time.Second},
		{pacing{continuous: true, lead: 36 * time.Second, priority: 7}, last, 5 * time.Minute, 10 * time.Second, 2 * time.Second, 8 * time.Second},
		{pacing{continuous: true, noFailback: true, priority: 7}, last, 5 * time.Minute, 10 * time.Second, 2500 * ms, 10 * time.Second},
		{rotating, last, 5 * time.Minute, 10 * time.Second, rotating.dueOf(workerlease.Lease{Slot: slot, Expiry: last}) / 4, -1},
	} {
		t.Run(fmt.Sprintf("%+v until %v", c.pacing, c.expiry.Sub(noon)), func(t *testing.T) {
			l := workerlease.Lease{Slot: slot, Expiry: c.expiry}
			grace := c.graceOf(l, c.left)
			if grace != c.grace {
				t.Errorf("graceOf() = %v, want %v", grace, c.grace)
			}
			if got := c.noticeOf(l, c.left, grace); got != c.notice {
				t.Errorf("noticeOf() = %v, want %v", got, c.notice)
			}
			if due := c.dueOf(l); due != c.dueAtEnds && c.dueAtEnds >= 0 {
				t.Errorf("dueOf() = %v, want %v", due, c.dueAtEnds)
			}
		})
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
					pace := pacing{continuous: true, priority: p, tieBreak: tie, lead: lead}
					grace := pace.graceOf(l, length)
					notice := pace.noticeOf(l, length, grace)
					if notice <= 0 || notice > grace {
						t.Errorf("slots of %v, %+v: notice %v, want more than nothing and at most the grace, %v", length, pace, notice, grace)
					}
					for _, spread := range []time.Duration{0, time.Millisecond, time.Hour} {
						turns := priority.NewTurns(leadOf(length, lead, 0), 0, spread)
						turn := turns.Lead - turns.Offset(p, tie, true, 1<<64-1)
						if turn/4 < notice {
							t.Errorf("slots of %v, %+v: the turn comes %v before the boundary, the notice %v", length, pace, turn, notice)
						}
					}
				}
			}
		}
	}
}
