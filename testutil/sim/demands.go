package sim

import (
	"fmt"
	"reflect"
	"strings"
)

// Demands counts how often the world knew which worker had to get a slot, because nothing
// had kept that worker from it. Any other outcome would have been a violation.
type Demands struct {
	// Turns are claims, none of which may come before the turn of its priority. Passed are
	// claims made while a worker of a higher priority was there and had not claimed: its turn,
	// and the time that a claim takes, may not have been over.
	Turns, Passed int
	// Entries are leases, none of which may be of the slot in which its process started.
	Entries int
	// Boundaries are slots that some worker must have had by their start; each is checked
	// twice. Outages are those after which some worker must have had the slot within a lead.
	Boundaries, Outages int
	// Succeeded are holders that died or stepped down, with FailoverWithin, after which another worker
	// must have taken over.
	Succeeded int
	// Unfit are leases that must have ended because their worker was not eligible, or made no progress.
	Unfit int
	// Preferred are slots that the worker preferred by an operator must have had.
	Preferred int
	// Heeded are leases that must have ended, or may not have been extended, because an order told their holder to go
	// at once. News are claims that must have come after all turns, because their worker had just heard that another
	// is preferred.
	Heeded, News int
	// Heard are slots that some worker must have had, because the order had ended that kept all from it.
	Heard int
	// Joined are members of a group that must have joined its lease.
	Joined int
	// Costs are slots of one process, for which it may have made no more calls than a slot
	// needs.
	Costs int
	// Cleared is poison that must have been superseded.
	Cleared int
	// Told are records that say what came of the work of a slot. Each must be its worker's, change no term, and
	// say what none before it has said.
	Told int
	// Asked are calls of a task for runs that operators have asked for, none of which may have been done.
	Asked int
}

// demanded are what the counts of Demands are of, in the order of its fields.
var demanded = []string{
	"claims, at their turn", "beside a higher priority", "leases, none of the first slot", "boundaries", "outages",
	"holders that died or stepped down", "leases that must have ended", "slots of a preferred worker", "leases sent away by an order",
	"claims after news of a preference", "slots after the end of an order", "members of a group", "slots, and the calls for them",
	"poison cleared", "outcomes of work", "calls that were asked for",
}

// Add adds the counts of another run.
func (d *Demands) Add(o Demands) {
	for field, n := range reflect.ValueOf(o).Fields() {
		sum := reflect.ValueOf(d).Elem().FieldByIndex(field.Index)
		sum.SetInt(sum.Int() + n.Int())
	}
}

// All is the sum.
func (d Demands) All() (sum int) {
	for _, n := range reflect.ValueOf(d).Fields() {
		sum += int(n.Int())
	}
	return sum
}

// String returns a table with one line for each kind.
func (d Demands) String() string {
	var b strings.Builder
	for i, what := range demanded {
		fmt.Fprintf(&b, "%-32s %10d\n", what, reflect.ValueOf(d).Field(i).Int())
	}
	return b.String()
}
