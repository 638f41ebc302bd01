package sim

import (
	"fmt"
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
}

// Add adds the counts of another run.
func (d *Demands) Add(o Demands) {
	d.Turns += o.Turns
	d.Passed += o.Passed
	d.Entries += o.Entries
	d.Boundaries += o.Boundaries
	d.Outages += o.Outages
	d.Succeeded += o.Succeeded
	d.Unfit += o.Unfit
	d.Preferred += o.Preferred
	d.Heeded += o.Heeded
	d.News += o.News
	d.Joined += o.Joined
	d.Costs += o.Costs
	d.Cleared += o.Cleared
	d.Told += o.Told
}

// All is the sum.
func (d Demands) All() int {
	return d.Turns + d.Passed + d.Entries + d.Boundaries + d.Outages + d.Succeeded + d.Unfit + d.Preferred + d.Heeded + d.News + d.Joined + d.Costs + d.Cleared + d.Told
}

// String returns a table with one line for each kind.
func (d Demands) String() string {
	var b strings.Builder
	for _, x := range []struct {
		what string
		n    int
	}{
		{"claims, at their turn", d.Turns},
		{"beside a higher priority", d.Passed},
		{"leases, none of the first slot", d.Entries},
		{"boundaries", d.Boundaries},
		{"outages", d.Outages},
		{"holders that died or stepped down", d.Succeeded},
		{"leases that must have ended", d.Unfit},
		{"slots of a preferred worker", d.Preferred},
		{"leases sent away by an order", d.Heeded},
		{"claims after news of a preference", d.News},
		{"members of a group", d.Joined},
		{"slots, and the calls for them", d.Costs},
		{"poison cleared", d.Cleared},
		{"outcomes of work", d.Told},
	} {
		fmt.Fprintf(&b, "%-32s %10d\n", x.what, x.n)
	}
	return b.String()
}
