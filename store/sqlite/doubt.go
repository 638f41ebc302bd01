package sqlite

import (
	"context"
	"time"

	"github.com/slotlease/slotlease/internal/terms"
	"github.com/slotlease/slotlease/store"
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

// inherit makes a line that a process is about to use as uncertain as each row says that has it, but
// for longer than any doubt lasts.
func (n *line) inherit(rows map[string]line, now time.Duration) {
	n.skew, n.unsureUntil = 0, time.Time{}
	at := n.at(now)
	for _, row := range rows {
		if row.offset == n.offset && at.Before(row.unsureUntil) && !row.unsureUntil.After(at.Add(terms.Longest)) {
			n.widen(row.skew, row.unsureUntil)
		}
	}
}

// rivals are the ids of the other lines by which, as of a reading of the boot clock, processes of
// the same boot may have worked.
func (n line) rivals(rows map[string]line, now time.Duration) (ids []string) {
	for id, row := range rows {
		if row.offset != n.offset && sharesBoot(n, row, now) {
			ids = append(ids, id)
		}
	}
	return ids
}

// farthest is the line of the boot, n or another that none has followed, that is farthest from one
// that is right: processes with its boot id go by it when they start.
func (n line) farthest(rows map[string]line, right line) line {
	for _, row := range rows {
		if row.over.IsZero() && sharesBoot(right, row, right.madeAt) && (row.offset-right.offset).Abs() > (n.offset-right.offset).Abs() {
			n = row
		}
	}
	return n
}

// granted are the terms by a line that may be in force, or are about to begin, at a reading of the
// boot clock.
func (n line) granted(t tail, since time.Duration) []store.Record {
	return t.state(n, since).InForce(n.at(since), terms.Ahead)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// doubt widens a line that nobody uses, and that isn't the only one of its boot, because the wall
// clock was set: a command that was started under another may still work, for as long as a
// term is in force by that. In the rows, it marks the other lines as those that this one follows,
// and removes those by which no term is in force: no process goes by one any more.
func (n *line) doubt(ctx context.Context, f *file, db rowser, rows map[string]line, since time.Duration) error {
	rivals := n.rivals(rows, since)
	if len(rivals) == 0 {
		return nil
	}
	now := n.at(since)
	first := now
	for _, id := range rivals {
		first = earlier(first, rows[id].at(since))
	}
	all, err := standing(ctx, f, db, first)
	if err != nil {
		return err
	}
	for _, id := range rivals {
		other := rows[id]
		apart, last := n.offset-other.offset, time.Time{}
		for _, t := range all {
			for _, r := range other.granted(t, since) {
				// When it is over by the other line, in store time by this one. Unless this one
				// shows it in the far future, where workers don't obey it, until it is over
				// whichever line somebody goes by.
				over := r.WindowEnd.Add(apart)
				if !r.WindowStart.After(now.Add(plausible)) {
					over = r.WindowEnd.Add(apart.Abs())
				}
				if bound := now.Add(terms.Longest - time.Millisecond); over.After(bound) {
					over = bound
				}
				n.widen(apart.Abs(), over.Add(time.Millisecond))
				if r.WindowEnd.After(last) {
					last = r.WindowEnd
				}
			}
		}
		if other.over = last; last.IsZero() {
			delete(rows, id)
		} else {
			rows[id] = other
		}
	}
	return nil
}
