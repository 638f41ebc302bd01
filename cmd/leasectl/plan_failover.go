package main

import (
	"math"
	"time"
)

// cutting is how slots are cut into parts with --failover-within. The source of
// truth is workerlease/internal/machine, grid.go and extend.go: a test holds this
// against the engine.
type cutting struct {
	failover time.Duration // 0: a slot is one part
	parts    float64
	length   time.Duration // of a part but the last, which is the lead
}

// cut cuts slots: into equal parts up to where claims for the next one open, so long
// that who dies in one is followed in time, and one more from there on.
func cut(slot, lead, failover time.Duration) cutting {
	if failover == 0 {
		return cutting{parts: 1, length: slot}
	}
	whole, most := slot-lead, failover-early(failover)
	n := math.Ceil(float64(whole) / float64(most))
	return cutting{failover: failover, parts: n + 1, length: time.Duration(float64(whole) / n)}
}

const (
	// freshest is how old a look at the time may be when a part is extended, at
	// most, and shareOfFresh how much older than the time that is left for it.
	freshest     = 2 * time.Minute
	shareOfFresh = 64
	// knownFor is how long a worker goes by what it has read of the ledger.
	knownFor = 2 * time.Minute
)

// extending is what the winner of a slot asks for on top, in all other parts of it.
func (c cutting) extending(lead time.Duration) operations {
	if c.failover == 0 {
		return operations{}
	}
	n := c.parts - 1
	old := min(max(time.Second, shareOfFresh*early(c.failover)), freshest)
	o := operations{Append: n, Now: math.Floor(n / c.looks(old))}
	read := -lead
	for k := 1.0; k <= n; k++ {
		if at := time.Duration(k*float64(c.length)) - early(c.failover); at-read > knownFor {
			read = at
			o.Tail++
		}
	}
	return o
}

// standing is what each other worker asks for on top: it looks at the end of each
// part whether the next is taken. At the end of the last but one claims for the next
// slot open, and its end is the boundary: there it looks anyway.
func (c cutting) standing(lead time.Duration) operations {
	n := max(c.parts-2, 0)
	return operations{Tail: n, Now: n / c.looks(max(lead, time.Second))}
}

// looks is for how many ends of parts one look at the time lasts, which may be so
// old.
func (c cutting) looks(old time.Duration) float64 {
	return math.Floor(float64(old)/float64(c.length)) + 1
}

// claims are what the winner of a slot, and each other worker, ask for when claims
// for it are open.
func (c cutting) claims(lead time.Duration) (won, lost operations) {
	if c.failover == 0 {
		return winner(c.length, lead), loser(c.length, lead)
	}
	// Neither has waited for all of the slot before.
	return winner(early(c.failover)+lead, lead), loser(c.length+lead, lead)
}
