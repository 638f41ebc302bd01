package workerlease_test

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/memory"
)

// Store time is what the bubble's clock shows. The servers that the workers ask are wrong
// by as much as may be: at the worst, the leader sees the latest time that is possible, and
// its successor the earliest.
func TestTheGapOfAFailbackIsTheMarginAndTwiceTheUncertaintyOfEachWorker(t *testing.T) {
	const skew = 100 * time.Millisecond
	for name, test := range map[string]struct{ low, high, early, late time.Duration }{
		"the worst":       {skew, -skew, 2 * skew, 2 * skew},
		"clocks agree":    {0, 0, skew, skew},
		"the other way":   {-skew, skew, 0, 0},
		"both are ahead":  {skew, skew, 2 * skew, 0},
		"both are behind": {-skew, -skew, 0, 2 * skew},
	} {
		bubble(t, name, func(t *testing.T) {
			inner := memory.New(memory.Options{})
			o := parted("low", 3, 20*time.Second)
			o.Continuous = true
			low := start(t, setup{ledger: vague{inner, skew, test.low}, Options: o})
			at(11 * time.Minute)
			o.InstanceID, o.Priority = "high", 0
			high := start(t, setup{ledger: vague{inner.Handle(), skew, test.high}, Options: o})
			boundary := 15 * time.Minute
			at(boundary - 2*time.Second)
			// They grow more uncertain up to the boundary.
			lows, highs := low.Status().Uncertainty, high.Status().Uncertainty
			at(16 * time.Minute)
			u, v := low.turn(t, 0), high.turn(t, 0)
			const drift, wake = 3 * time.Millisecond, 3 * time.Millisecond
			early, late := boundary-u.ended, v.allocated-boundary
			if most := margin + 2*(lows+drift) + wake; early > most || late > 2*(highs+drift)+wake {
				t.Errorf("the leader stopped %v early, the next began %v late, want at most %v and %v", early, late, most, 2*highs)
			}
			// That is what it comes to, but for how long ago they were sure of the time.
			const age = 25 * time.Millisecond
			if early < margin+test.early || early > margin+test.early+age || late < test.late || late > test.late+age {
				t.Errorf("the leader stopped %v early, the next began %v late, want %v and %v, and up to %v more", early, late, margin+test.early, test.late, age)
			}
			apart(t, low, high)
		})
	}
}
