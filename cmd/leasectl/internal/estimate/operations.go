package estimate

import (
	"math"
	"time"

	"github.com/slotlease/slotlease/workerlease"
)

// operations are how many operations of a ledger are called, on average.
type operations [8]float64

// The operations; the last are the records that trims delete.
const (
	opNow = iota
	opTail
	opAppend
	opGet
	opTrim
	opDeleted
)

// opNames are their names.
var opNames = []string{"now", "tail", "append", "get", "trim", "deleted"}

// sum adds up operations, or costs.
func sum[T operations | cost](all ...T) (total T) {
	for _, each := range all {
		for i := range total {
			total[i] += each[i]
		}
	}
	return total
}

// times is so many times operations, or a cost.
func times[T operations | cost](each T, n float64) T {
	for i := range each {
		each[i] *= n
	}
	return each
}

// winner and loser are the operations of one worker that claims a slot, in a steady
// state, after a wait. In slots that are hardly longer than a second there are fewer,
// because the last sample of the time is still fresh.
func winner(t workerlease.Timing, wait, lead time.Duration) operations {
	o := loser(t, wait, lead)
	o[opAppend] = 1
	return o
}

func loser(t workerlease.Timing, wait, lead time.Duration) operations {
	o := operations{opNow: 1, opTail: 1}
	// After a long wait the first sample comes earlier, by as much as the clocks may have
	// drifted apart, and another one follows when the turn comes.
	if drift := time.Duration(float64(wait) * workerlease.MaxClockDrift); drift > t.ClaimSampleAge(lead) {
		o[opNow] = 2
	}
	return o
}

// trimming are the operations of one trim, which looks for a record older than the
// retention, twice as far back each time, and deletes the records that have gathered
// since the last trim. between is the time from record to record.
func trimming(t workerlease.Timing, between time.Duration) operations {
	looks := 1.0
	for depth := time.Duration(t.TrimKeep); depth*between < t.Options.Retention; depth *= 2 {
		looks++
	}
	return operations{opGet: looks, opTrim: 1, opDeleted: float64(t.TrimEvery)}
}

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

// extending are the winner's operations in all parts of a slot but the first. None of the stores compares the record
// below: a read of the head shows that it is there.
func (p parts) extending() operations {
	if !p.several() {
		return operations{}
	}
	n := p.n - 1
	return operations{opAppend: n, opTail: n, opNow: math.Floor(n / p.served(p.timing.ExtendSampleAge))}
}

// standingBy are the operations of each other worker: at the end of each part it reads
// whether the next one is taken. It reads the head anyway at the end of the last part but
// one, where claims for the next slot open, and at the end of the last, the boundary.
func (p parts) standingBy() operations {
	n := max(p.n-2, 0)
	return operations{opTail: n, opNow: n / p.served(p.timing.ClaimSampleAge(p.lead))}
}

// served is the number of ends of parts that one sample of the time serves, given how old
// it may be.
func (p parts) served(age time.Duration) float64 {
	return math.Floor(float64(age)/float64(p.length)) + 1
}
