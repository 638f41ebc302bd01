package sqlite

import (
	"context"
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

// sharesBoot reports whether another line may be of the boot of this one, which is newer. It is
// not if the boot began, by the wall clock, after the other line.
func (n line) sharesBoot(other line) bool {
	madeAt := other.madeAt
	if madeAt == unknown {
		madeAt = earliest
	}
	return madeAt <= n.madeAt && n.offset < other.offset+madeAt
}

// doubt widens a new line that may be the second one of its boot, because the wall clock was
// set in between: a command that was started under the other may still work, for as long as a
// term is in force by that. What was to come by the other has no holder, since no process goes
// by it any more.
func (n *line) doubt(ctx context.Context, f *file, db rowser, rows map[string]line) error {
	now := n.at(n.madeAt)
	others := map[time.Duration]time.Time{} // store time by each, by its offset: containers share many
	since := now
	for _, row := range rows {
		if at := row.at(n.madeAt); n.sharesBoot(row) {
			others[row.offset] = at
			since = earlier(since, at)
		}
	}
	if len(others) == 0 {
		return nil
	}
	all, err := standing(ctx, f, db, since)
	if err != nil {
		return err
	}
	bound := now.Add(terms.Longest)
	for offset, at := range others {
		apart := n.offset - offset
		for _, s := range all {
			for _, r := range s.InForce(at) {
				// When it is over by the other line, in store time by this one. Unless this one
				// shows it in the far future, where workers don't obey it, until it is over
				// whichever line somebody goes by.
				over := r.WindowEnd.Add(apart)
				if !r.WindowStart.After(now.Add(plausible)) {
					over = r.WindowEnd.Add(apart.Abs())
				}
				n.skew = max(n.skew, apart.Abs())
				n.unsureUntil = later(n.unsureUntil, earlier(over.Add(time.Millisecond), bound))
			}
		}
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
