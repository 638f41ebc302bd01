//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
)

// checkLedger checks, oldest record first, that windows are disjoint, tokens strictly
// increase from term to term, extensions begin where their term ended, and releases
// free only their own term. Done records change no term, and a slot that is done stays
// done.
func checkLedger(records []store.Record) (wrong []string) {
	var head store.Record
	released := "" // the claim of the newest term that was released
	for _, r := range records {
		bad := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf("%s: record %d: %s", r.WorkerType, r.Seq, fmt.Sprintf(format, args...)))
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
		switch r.Kind {
		case store.KindGrant:
			if extends := r.Claim == head.Claim && head.Seq != 0; extends {
				if r.Claim == released || r.Token != head.Token || !r.WindowStart.Equal(head.WindowEnd) {
					bad("doesn't go on with the term of %d: token %d, %d; from %s, %s", head.Seq, r.Token, head.Token, store.Format(r.WindowStart), store.Format(head.WindowEnd))
				}
				break
			}
			if r.Token <= head.Token {
				bad("token %d is not higher than %d", r.Token, head.Token)
			}
			if r.WindowStart.Before(head.WindowEnd) {
				bad("window from %s overlaps one to %s", store.Format(r.WindowStart), store.Format(head.WindowEnd))
			}
		case store.KindRelease:
			if r.Claim != head.Claim || r.Token != head.Token {
				bad("releases a term that isn't the newest")
			}
			released = r.Claim
		case store.KindDone:
			if r.Claim != head.Claim || r.Token != head.Token || !r.WindowStart.Equal(head.WindowEnd) || !r.WindowEnd.Equal(head.WindowEnd) {
				bad("is done, and changes the term of %d", head.Seq)
			}
		case store.KindReset:
			bad("is a reset: %s", r.Metadata)
		default:
			bad("is a %s, which no worker had a reason to write", r.Kind)
		}
		head = r
	}
	return wrong
}

// windows are the grants of a ledger by token, with their extensions, shortened by
// their releases.
func windows(records []store.Record) map[int64]store.Record {
	found := map[int64]store.Record{}
	for _, r := range records {
		switch r.Kind {
		case store.KindGrant:
			if g, extends := found[r.Token]; extends && g.Claim == r.Claim {
				r.WindowStart = g.WindowStart
			}
			found[r.Token] = r
		case store.KindRelease:
			if g, ok := found[r.Token]; ok && r.WindowStart.Before(g.WindowEnd) {
				g.WindowEnd = r.WindowStart
				found[r.Token] = g
			}
		default:
		}
	}
	return found
}

// outside is work that was done before or after its window, or without one.
type outside struct {
	*work
	early, late time.Duration
	granted     bool
}

// checkWorks finds the works that were not inside their windows. zero is store
// time at 0 of the boot clock, known to within tolerance.
func checkWorks(works []*work, granted map[int64]store.Record, zero time.Time, tolerance time.Duration) (found []outside) {
	for _, w := range works {
		g, ok := granted[w.token]
		if !ok || g.InstanceID != w.instance {
			found = append(found, outside{work: w})
			continue
		}
		o := outside{work: w, granted: true}
		o.early = max(0, g.WindowStart.Sub(zero.Add(w.first))-tolerance)
		o.late = max(0, zero.Add(w.last).Sub(g.WindowEnd)-tolerance)
		if o.early > 0 || o.late > 0 {
			found = append(found, o)
		}
	}
	return found
}
