package machine_test

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// The clock may jump between the machine's Allocate and what comes of it. Both
// callbacks are called then, in order, or none.
func TestAJumpRightBehindAllocateLeavesTheCallbacksPaired(t *testing.T) {
	start := time.Date(2025, 1, 1, 0, 5, 0, 0, time.UTC)
	slot := slots.Slot{Start: start, End: start.Add(5 * time.Minute)}
	m := machine.Machine{Config: plain()}
	s := machine.State{
		Bid:  machine.Bid{Slot: m.Schedule.Next(start), Turn: slot.End.Add(-10 * time.Second)},
		Hold: machine.Hold{Next: machine.Term{Seq: 1, Slot: slot, Start: slot.Start, End: slot.End, Token: 1, Claim: "c", Own: true}},
	}
	now := start.Add(time.Second)
	at := machine.Moment{Now: timeline.Interval{Earliest: now, Latest: now}, Local: time.Hour}
	s, actions := m.Step(s, at, machine.Wake{})
	if _, ok := actions[0].(machine.Allocate); !ok {
		t.Fatalf("actions = %v, want Allocate", actions)
	}
	at.Epoch, at.Jumps = 1, 1
	for _, c := range []struct {
		event     machine.Event
		expires   int
		told      []machine.What
		becauseOf machine.Reason
	}{
		{machine.Skipped{}, 0, []machine.What{machine.Missed}, machine.TooLate},
		{machine.Began{}, 1, []machine.What{machine.Allocated, machine.Expired}, machine.ClockJumped},
	} {
		_, actions := m.Step(s, at, c.event)
		expires, told := 0, []machine.What(nil)
		for _, a := range actions {
			switch a := a.(type) {
			case machine.Expire:
				expires++
			case machine.Tell:
				told = append(told, a.Note.What)
				if a.Note.Why != 0 && a.Note.Why != c.becauseOf {
					t.Errorf("Step(%T): why = %v, want %v", c.event, a.Note.Why, c.becauseOf)
				}
			}
		}
		if expires != c.expires || len(told) != len(c.told) || told[0] != c.told[0] || told[len(told)-1] != c.told[len(told)-1] {
			t.Errorf("Step(%T) = %d times Expire, told %v, want %d, %v", c.event, expires, told, c.expires, c.told)
		}
	}
}
