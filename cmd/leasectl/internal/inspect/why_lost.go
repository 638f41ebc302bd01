package inspect

import (
	"fmt"
	"slices"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// isLost reports that somebody had the lease at the time that is asked about, or may have had it, by what the store has lost.
func (a answer) isLost() bool {
	return slices.ContainsFunc(a.Lost, func(l store.Lost) bool { return !l.Start.After(a.At) && a.At.Before(l.End) })
}

// lost says which records of the slot the store has lost.
func (a answer) lost() (lines []string) {
	for _, l := range a.Lost {
		whose := "of " + l.InstanceID
		if !l.Start.IsZero() {
			whose = fmt.Sprintf("by which %s had a lease from %s", l.InstanceID, a.clock(l.Start))
		}
		lines = append(lines, fmt.Sprintf("The store has lost record %d, %s until %s.", l.Seq, whose, a.clock(l.End)))
	}
	return lines
}

// losesAfter reports that the store has lost records of a term, or of one after it in its slot.
func (a answer) losesAfter(t history.Entry) bool {
	return t.State == history.Expired && slices.ContainsFunc(a.Lost, func(l store.Lost) bool { return l.Seq > t.NewestSeq && l.End.After(t.Window.End) })
}
