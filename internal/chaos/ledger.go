//go:build linux

package main

import (
	"fmt"
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

// outside is a turn before or after its window, or without one.
type outside struct {
	*turn

	early, late time.Duration
	granted     bool
}

// checkTurns finds the turns that were not inside their windows. zero is store
// time at 0 of the boot clock, known to within tolerance.
func checkTurns(turns []*turn, granted map[int64]store.Record, zero time.Time, tolerance time.Duration) (found []outside) {
	for _, t := range turns {
		g, ok := granted[t.token]
		if !ok || g.InstanceID != t.instance {
			found = append(found, outside{turn: t})
			continue
		}
		o := outside{turn: t, granted: true}
		o.early = max(0, g.WindowStart.Sub(zero.Add(t.first))-tolerance)
		o.late = max(0, zero.Add(t.last).Sub(g.WindowEnd)-tolerance)
		if o.early > 0 || o.late > 0 {
			found = append(found, o)
		}
	}
	return found
}

// busy is how late a guard may be on a machine that is busy, as long as no other
// command has begun: that would be an overlap.
const busy = 250 * ms

// judgeOutside separates work outside of its window that nothing could prevent, work
// that was only a little late, and bugs. Nothing excuses work that began early, or without a grant.
func judgeOutside(found []outside, strikes []*strike) (expected, late, bugs []outside) {
	for _, o := range found {
		switch {
		case !o.granted || o.early > 0:
			bugs = append(bugs, o)
		case helpless(strikes, o.guard, o.last-o.late, o.last):
			expected = append(expected, o)
		case o.late <= busy:
			late = append(late, o)
		default:
			bugs = append(bugs, o)
		}
	}
	return expected, late, bugs
}

func (o outside) String() string {
	if !o.granted {
		return fmt.Sprintf("%s: %v was not granted its token", o.workerType, o.turn)
	}
	return fmt.Sprintf("%s: %v began %v before its window and went on for %v after it", o.workerType, o.turn, o.early, o.late)
}
