package estimate

import (
	"math"
	"time"
)

// parts are the parts that FailoverWithin cuts slots into.
type parts struct {
	failover time.Duration // 0: a slot is one part
	n        float64
	length   time.Duration // of each part but the last, which is as long as the lead
}

// cut cuts slots into equal parts, up to where claims for the next slot open, and one
// more from there on. The parts are short enough for a takeover in time when a holder
// dies in one.
func cut(slot, lead, failover time.Duration) parts {
	if failover == 0 {
		return parts{n: 1, length: slot}
	}
	whole, most := slot-lead, failover-early(failover)
	n := math.Ceil(float64(whole) / float64(most))
	return parts{failover: failover, n: n + 1, length: time.Duration(float64(whole) / n)}
}

const (
	// freshest bounds how old a sample of the time may be when a part is extended, and
	// shareOfFresh bounds it as a multiple of the time that is left.
	freshest     = 2 * time.Minute
	shareOfFresh = 64
	// knownFor is how long a worker relies on the head that it has read.
	knownFor = 2 * time.Minute
)

// extending are the winner's operations in all parts of a slot but the first.
func (p parts) extending(lead time.Duration) operations {
	if p.failover == 0 {
		return operations{}
	}
	n := p.n - 1
	old := min(max(time.Second, shareOfFresh*early(p.failover)), freshest)
	o := operations{Append: n, Now: math.Floor(n / p.looks(old))}
	read := -lead
	for k := 1.0; k <= n; k++ {
		if at := time.Duration(k*float64(p.length)) - early(p.failover); at-read > knownFor {
			read = at
			o.Tail++
		}
	}
	return o
}

// standingBy are the operations of each other worker: at the end of each part it reads
// whether the next one is taken. It reads the head anyway at the end of the last part but
// one, where claims for the next slot open, and at the end of the last, the boundary.
func (p parts) standingBy(lead time.Duration) operations {
	n := max(p.n-2, 0)
	return operations{Tail: n, Now: n / p.looks(max(lead, time.Second))}
}

// looks is the number of ends of parts that one sample of the time serves, given how old
// it may be.
func (p parts) looks(old time.Duration) float64 {
	return math.Floor(float64(old)/float64(p.length)) + 1
}

// claims are the operations of the winner of a slot, and of each other worker, when claims
// for it are open.
func (p parts) claims(lead time.Duration) (won, lost operations) {
	if p.failover == 0 {
		return winner(p.length, lead), loser(p.length, lead)
	}
	// Neither has waited for all of the slot before.
	return winner(early(p.failover)+lead, lead), loser(p.length+lead, lead)
}
