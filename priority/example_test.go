package priority_test

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/priority"
)

// When may workers claim the slot that starts at 12:00, if slots last 5 min?
func Example() {
	boundary := time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)
	lead := priority.Lead(5*time.Minute, 0)
	turns := priority.NewTurns(lead, 0, 40*time.Millisecond)
	for p := range 3 {
		fmt.Println(p, turns.At(boundary, p, priority.Sticky, true, 0).Format(time.TimeOnly))
	}
	// Output:
	// 0 11:59:50
	// 1 11:59:51
	// 2 11:59:52
}

// Two workers of priority 1, one of which holds the slot before.
func ExampleTurns_Offset() {
	turns := priority.NewTurns(10*time.Second, 0, 0)
	const draw = 1 << 63 // in the middle of what may be drawn
	for _, tie := range []priority.TieBreak{priority.Sticky, priority.Rotate} {
		fmt.Println(tie, turns.Offset(1, tie, true, draw), turns.Offset(1, tie, false, draw))
	}
	// Output:
	// sticky 1s 1.5s
	// rotate 1.625s 1.25s
}
