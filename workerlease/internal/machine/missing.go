package machine

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// That the store has lost a record is told for people, too, and apart from what came of work: once the wait for all that may
// have been granted by it is over.

// Missing is what is to be told of a record that the store has lost.
type Missing struct {
	Report
	Was Known
}

// reportMissing has it told that a record is gone, in place of one that was gone before: from a local reading on, since until then
// it may yet be that a read was stale.
func (x *step) reportMissing(k Known, after time.Duration) {
	gone := store.Lost{Seq: k.Seq, Token: k.Token, Claim: k.Claim, InstanceID: k.InstanceID, Group: k.Group, Start: k.Start, End: k.End}
	x.s.Missing = Missing{Was: k, Report: Report{Metadata: gone.Metadata(), After: after, Until: after + x.slotLength(), Latest: after + 2*x.slotLength()}}
}

// found forgets that a record is gone which is among those that were read.
func (m *Missing) found(records []store.Record) {
	if slices.ContainsFunc(records, func(r store.Record) bool { return m.Was.at(r) && m.Was.is(r) }) {
		*m = Missing{}
	}
}
