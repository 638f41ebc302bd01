package sqlite

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/slotlease/slotlease/internal/terms"
)

const (
	// earliest is how far into a boot an earlier version of this package made a line at the
	// earliest, of which the row doesn't say when.
	earliest = time.Minute
	// plausible is how far a window may be ahead of a line that was just made, so that it is
	// taken for one that somebody may obey by it.
	plausible = 24 * time.Hour
)

// made is what the boot clock showed when a line began, at the earliest.
func (n line) made() time.Duration {
	if n.madeAt == unknown {
		return earliest
	}
	return n.madeAt
}

// sharesBoot reports whether two lines may be of the boot whose clock shows a time now. They are
// not if, by the wall clock, the boot of the newer one began after the other was made.
func sharesBoot(a, b line, now time.Duration) bool {
	if a.made() < b.made() {
		a, b = b, a
	}
	return a.made() <= now && a.offset < b.offset+b.made()
}

// widen makes a line uncertain by a skew until a time.
func (n *line) widen(skew time.Duration, until time.Time) {
	n.skew = max(n.skew, skew)
	if until.After(n.unsureUntil) {
		n.unsureUntil = until
	}
}

// inherit makes a line that a process is about to use as uncertain as each row says that has it.
func (n *line) inherit(rows map[string]line, now time.Duration) {
	n.skew, n.unsureUntil = 0, time.Time{}
	for _, row := range rows {
		if row.offset == n.offset && n.at(now).Before(row.unsureUntil) {
			n.widen(row.skew, row.unsureUntil)
		}
	}
}

// rivals are the other lines by which, as of a reading of the boot clock, processes of the same
// boot may have worked: store time by each, by its offset, which containers share.
func (n line) rivals(rows map[string]line, now time.Duration) map[time.Duration]time.Time {
	times := map[time.Duration]time.Time{}
	for _, row := range rows {
		if row.offset != n.offset && sharesBoot(n, row, now) {
			times[row.offset] = row.at(now)
		}
	}
	return times
}

// doubt widens a line that nobody uses, and that isn't the only one of its boot, because the wall
// clock was set: a command that was started under another may still work, for as long as a
// term is in force by that. What was to come by another has no holder, since no process goes
// by it any more.
func (n *line) doubt(ctx context.Context, f *file, db rowser, rows map[string]line, since time.Duration) error {
	others := n.rivals(rows, since)
	if len(others) == 0 {
		return nil
	}
	now := n.at(since)
	all, err := standing(ctx, f, db, slices.MinFunc(slices.Collect(maps.Values(others)), time.Time.Compare))
	if err != nil {
		return err
	}
	for _, s := range all {
		for offset, at := range others {
			for _, r := range s.InForce(at) {
				// When it is over by the other line, in store time by this one. Unless this one
				// shows it in the far future, where workers don't obey it, until it is over
				// whichever line somebody goes by.
				apart := n.offset - offset
				over := r.WindowEnd.Add(apart)
				if !r.WindowStart.After(now.Add(plausible)) {
					over = r.WindowEnd.Add(apart.Abs())
				}
				if bound := now.Add(terms.Longest - time.Millisecond); over.After(bound) {
					over = bound
				}
				n.widen(apart.Abs(), over.Add(time.Millisecond))
			}
		}
	}
	return nil
}
