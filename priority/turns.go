package priority

import (
	"math/bits"
	"time"
)

// The priorities, from the one that claims first to the one that claims last.
const (
	Highest = 0
	Lowest  = 7
)

const (
	// MaxLead is how long before a boundary claims open at most.
	MaxLead = 5 * time.Minute
	// DefaultLead is how long before a boundary claims open by default, if the
	// slot before is long enough.
	DefaultLead = 10 * time.Second
)

const (
	priorities = Lowest - Highest + 1
	// defaultSteps and leastSteps are the number of steps in a lead, by default and
	// at least. Both leave time after the last turn for its claims to arrive.
	defaultSteps = 10
	leastSteps   = priorities + 1
)

// Lead is how long before a boundary claims open, for a slot that follows one of
// length before. want is the lead asked for; 0 or less means the default, which is
// [DefaultLead], but at most before/4. The result is never more than [MaxLead] or
// before/2, and never negative.
func Lead(before, want time.Duration) time.Duration {
	before = max(before, 0)
	if want <= 0 {
		return min(before/4, DefaultLead)
	}
	return min(want, before/2, MaxLead)
}

// Turns is the turn schedule of one boundary: when, after claims open, each priority
// may claim. Make it with NewTurns. The methods accept any other value, too: they take
// a negative Lead or Step for 0, and a Step above Lead/9 for Lead/9.
type Turns struct {
	// Lead is how long before the boundary the first turn starts.
	Lead time.Duration
	// Step is the distance from one turn to the next.
	Step time.Duration
}

// NewTurns makes the turn schedule for a lead (see Lead; bounded to 0 … MaxLead).
// step is the distance between turns asked for; 0 or less means lead/10. spread bounds
// how far apart two workers can act at one instant of store time: the uncertainty of
// their store time plus the latency of an append. The schedule's step is at least
// 2×spread, so that what was claimed in the first half of a turn has arrived when the next
// begins, but at most lead/9, so that the last turn ends before the boundary with a step's
// time to spare. If 2×spread is more than lead/9, not even these claims are sure to have.
func NewTurns(lead, step, spread time.Duration) Turns {
	lead = min(max(lead, 0), MaxLead)
	widest := lead / leastSteps
	if step <= 0 {
		step = lead / defaultSteps
	}
	// Bounding spread first keeps its double from overflowing.
	spread = min(max(spread, 0), widest)
	return Turns{Lead: lead, Step: min(max(step, 2*spread), widest)}
}

// Offset is how long after claims open (at boundary − Lead) a worker of priority p
// may claim: p×Step, and its place within that turn. A p outside of Highest … Lowest
// counts as the nearer of the two. held reports that this worker holds the slot
// before. draw is a random number, uniform over all 64 bits, drawn anew for each
// boundary; a larger draw never makes an earlier place.
//
//   - [Sticky]: the holder at the turn's start, the others spread over its second and
//     third quarter.
//   - [Rotate]: the others spread over the turn's first half, the holder in the middle
//     of the third quarter.
//   - [Random]: all spread over the turn's first three quarters.
//   - [Spread]: who is to have the slot at the turn's start, the others spread over
//     its third quarter: many types are claimed at once, so that claims come late more often.
//
// The last quarter is nobody's: the last claim of a turn has that long to arrive before the next
// turn starts.
// Any other tie-break counts as Sticky. The result is in [p×Step, (p+¾)×Step), or
// p×Step if Step is 0.
func (t Turns) Offset(p int, tie TieBreak, held bool, draw uint64) time.Duration {
	step := t.step()
	turn := time.Duration(min(max(p, Highest), Lowest)) * step
	end := step - step/4
	switch {
	case tie == Random:
		return turn + spreadOver(end, draw)
	case tie == Rotate && held:
		return turn + end - (end-step/2+1)/2
	case tie == Rotate:
		return turn + spreadOver(step/2, draw)
	case held:
		return turn
	case tie == Spread:
		return turn + step/2 + spreadOver(end-step/2, draw)
	default:
		return turn + step/4 + spreadOver(end-step/4, draw)
	}
}

// At is the instant from which a worker may claim the slot that starts at
// boundary: boundary − Lead + Offset(p, tie, held, draw). It is never after the
// boundary, and before it if Lead is positive.
func (t Turns) At(boundary time.Time, p int, tie TieBreak, held bool, draw uint64) time.Time {
	return boundary.Add(t.Offset(p, tie, held, draw) - max(t.Lead, 0))
}

// step is Step within its bounds.
func (t Turns) step() time.Duration {
	return min(max(t.Step, 0), max(t.Lead, 0)/leastSteps)
}

// spreadOver maps a draw evenly to [0, width), and to 0 if width is 0. It takes
// the high half of draw×width (Lemire's method) instead of a remainder, so small
// differences of the draw make small differences of the place.
func spreadOver(width time.Duration, draw uint64) time.Duration {
	high, _ := bits.Mul64(draw, uint64(width))
	return time.Duration(high)
}
