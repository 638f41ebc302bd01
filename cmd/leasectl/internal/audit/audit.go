// Package audit checks that the records of a ledger keep the protocol's rules: tokens
// strictly increase from term to term, terms have no gaps, and no window overlaps another.
package audit

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Ledger checks the records of a ledger that only grants and releases, the oldest first.
// It returns a line for each problem.
func Ledger(records []store.Record) (problems []string) {
	bad := func(r store.Record, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("record %d: %s", r.Seq, fmt.Sprintf(format, args...)))
	}
	var end time.Time
	var token, seq int64
	var claim string
	for _, r := range records {
		if err := r.Check(); err != nil {
			bad(r, "%v", err)
			continue
		}
		if seq != 0 && r.Seq != seq+1 {
			bad(r, "comes after %d", seq)
		}
		seq = r.Seq
		switch r.Kind {
		case store.KindGrant:
			extends := r.Claim == claim
			if extends && r.Token != token {
				bad(r, "extends a term with the token %d, not %d", r.Token, token)
			}
			if !extends && r.Token <= token {
				bad(r, "token %d is not higher than %d", r.Token, token)
			}
			if extends && r.WindowStart.After(end) {
				bad(r, "extends a term that ended at %s from %s on", store.Format(end), store.Format(r.WindowStart))
			}
			if r.WindowStart.Before(end) {
				bad(r, "window from %s overlaps one to %s", store.Format(r.WindowStart), store.Format(end))
			}
			token, claim = r.Token, r.Claim
		case store.KindRelease:
			if r.Claim != claim {
				bad(r, "releases a term that isn't the newest")
			}
			claim = ""
		default:
			bad(r, "is a %s, which a worker without jobs never writes", r.Kind)
		}
		end = r.WindowEnd
	}
	return problems
}
