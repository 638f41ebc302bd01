package sqlite

import (
	"context"
	"time"
)

// earliest is how far into a boot an earlier version of this package made a line at the
// earliest, of which the row doesn't say when.
const earliest = time.Minute

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
	var others []line
	since := now
	for _, row := range rows {
		if n.sharesBoot(row) {
			others = append(others, row)
			if at := row.at(n.madeAt); at.Before(since) {
				since = at
			}
		}
	}
	if len(others) == 0 {
		return nil
	}
	all, err := newest(ctx, f, db, since)
	if err != nil {
		return err
	}
	for _, other := range others {
		apart := n.offset - other.offset
		for _, records := range all {
			terms, _ := unfinished(records)
			for _, r := range terms {
				if !within(r, other.at(n.madeAt)) {
					continue
				}
				// When it is over by the other line, in store time by this one. Unless this one
				// shows it in the far future, where workers don't obey it, until it is over
				// whichever line somebody goes by.
				over := r.WindowEnd.Add(apart)
				if !r.WindowStart.After(now.Add(plausible)) {
					over = r.WindowEnd.Add(apart.Abs())
				}
				over = over.Add(time.Millisecond)
				if bound := now.Add(longest); over.After(bound) {
					over = bound
				}
				n.skew = max(n.skew, apart.Abs())
				if over.After(n.unsureUntil) {
					n.unsureUntil = over
				}
			}
		}
	}
	return nil
}
