//go:build linux

package main

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

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
