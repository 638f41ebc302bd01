package estimate

import (
	"math"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// parts are the parts that FailoverWithin cuts slots into.
type parts struct {
	timing workerlease.Timing
	lead   time.Duration
	n      float64
	length time.Duration // of each part but the last, which is as long as the lead
}

// cut cuts slots of a length into parts; without FailoverWithin there is one.
func cut(t workerlease.Timing, slot, lead time.Duration) parts {
	if t.Options.FailoverWithin == 0 {
		return parts{timing: t, lead: lead, n: 1, length: slot}
	}
	open := slot - lead
	n := float64(t.PartsBefore(open))
	return parts{timing: t, lead: lead, n: n + 1, length: time.Duration(float64(open) / n)}
}

// several reports that slots have parts.
func (p parts) several() bool { return p.timing.Options.FailoverWithin > 0 }

// claims are the operations of the winner of a slot, and of each other worker, when claims
// for it are open.
func (p parts) claims() (won, lost operations) {
	if !p.several() {
		return winner(p.timing, p.length, p.lead), loser(p.timing, p.length, p.lead)
	}
	// Neither has waited for all of the slot before.
	return winner(p.timing, p.timing.ExtendEarly+p.lead, p.lead), loser(p.timing, p.length+p.lead, p.lead)
}

// extending are the winner's operations in all parts of a slot but the first.
func (p parts) extending() operations {
	if !p.several() {
		return operations{}
	}
	n := p.n - 1
	o := operations{Append: n, Now: math.Floor(n / p.served(p.timing.ExtendSampleAge))}
	read := -p.lead
	for k := 1.0; k <= n; k++ {
		at := time.Duration(k*float64(p.length)) - p.timing.ExtendEarly
		if at-read > workerlease.HeadMaxAge {
			read = at
			o.Tail++
		}
	}
	return o
}

// standingBy are the operations of each other worker: at the end of each part it reads
// whether the next one is taken. It reads the head anyway at the end of the last part but
// one, where claims for the next slot open, and at the end of the last, the boundary.
func (p parts) standingBy() operations {
	n := max(p.n-2, 0)
	return operations{Tail: n, Now: n / p.served(p.timing.ClaimSampleAge(p.lead))}
}

// served is the number of ends of parts that one sample of the time serves, given how old
// it may be.
func (p parts) served(age time.Duration) float64 {
	return math.Floor(float64(age)/float64(p.length)) + 1
}
