// Package audit checks that the records of a ledger keep the protocol's rules: tokens
// strictly increase from term to term, a term has no gaps, no window overlaps another,
// and what is done stays done.
package audit

import (
	"fmt"

	"github.com/slotlease/slotlease/store"
)

// Ledger checks the records of a ledger that no worker had a reason to reset, the oldest
// first. It returns a line for each problem.
func Ledger(records []store.Record) (problems []string) {
	var head store.Record
	released := "" // the claim of the newest term that was released
	for _, r := range records {
		bad := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("record %d: %s", r.Seq, fmt.Sprintf(format, args...)))
		}
		if err := r.Check(); err != nil {
			bad("%v", err)
			continue
		}
		if head.Seq != 0 && r.Seq != head.Seq+1 {
			bad("comes after %d", head.Seq)
		}
		if r.DoneUntil.Before(head.DoneUntil) {
			bad("is done until %s, and the one before until %s", store.Format(r.DoneUntil), store.Format(head.DoneUntil))
		}
		newest := r.Claim == head.Claim && r.Claim != released // its term
		switch r.Kind {
		case store.KindGrant:
			if newest && r.Token != head.Token {
				bad("extends a term with the token %d, not %d", r.Token, head.Token)
			}
			if !newest && r.Token <= head.Token {
				bad("token %d is not higher than %d", r.Token, head.Token)
			}
			if newest && r.WindowStart.After(head.WindowEnd) {
				bad("extends a term that ended at %s from %s on", store.Format(head.WindowEnd), store.Format(r.WindowStart))
			}
			if r.WindowStart.Before(head.WindowEnd) {
				bad("window from %s overlaps one to %s", store.Format(r.WindowStart), store.Format(head.WindowEnd))
			}
		case store.KindRelease:
			if !newest || r.Token != head.Token {
				bad("releases a term that isn't the newest")
			}
			released = r.Claim
		case store.KindDone, store.KindOutcome:
			if r.Claim != head.Claim || r.Token != head.Token || r.InstanceID != head.InstanceID || !r.WindowStart.Equal(head.WindowEnd) || !r.WindowEnd.Equal(head.WindowEnd) {
				bad("is of kind %s, and changes the term of %d", r.Kind, head.Seq)
			}
			if r.Kind == store.KindDone && r.Attempt == 0 {
				bad("is done, but no job of a slot")
			}
			if _, tells := r.Outcome(); !tells && (r.Kind == store.KindOutcome || r.Metadata != "") {
				bad("tells no outcome: %.100q", r.Metadata)
			}
		default:
			bad("of kind %s, which no worker had a reason to write", r.Kind)
		}
		head = r
	}
	return problems
}
