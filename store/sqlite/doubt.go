package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// earliest is how far into a boot an early version of this package made a line at the
	// earliest, of which the row doesn't say when.
	earliest = time.Minute
	// adoptable is how far from the wall clock another line of the boot may be so that it is taken. Farther, it may be
	// that of another machine, by which all records would be poison.
	adoptable = ledger.Ahead
)

// made is what the boot clock showed when a line began, at the earliest.
func (n line) made() time.Duration {
	if n.madeAt == unknown {
		return earliest
	}
	return n.madeAt
}

// apart is how far two lines are apart.
func (n line) apart(other line) time.Duration { return (n.offset - other.offset).Abs() }

// sharesBoot reports whether two lines may be of the boot whose clock shows a time now. They are
// not if, by the wall clock, the boot of the newer one began after the other was made.
func sharesBoot(a, b line, now time.Duration) bool {
	if a.made() < b.made() {
		a, b = b, a
	}
	return a.made() <= now && a.offset < b.offset+b.made()
}

// rivals are the other lines by which, as of a reading of the boot clock, processes of the same
// boot may have worked, each once, by boot id.
func (n line) rivals(rows map[string]line, now time.Duration) map[string]line {
	all, seen := map[string]line{}, map[time.Duration]bool{n.offset: true}
	for id, row := range rows {
		if !seen[row.offset] && sharesBoot(n, row, now) {
			seen[row.offset], all[id] = true, row
		}
	}
	return all
}

// farthest is the line of the boot, n or another, that is farthest from one that is right:
// processes with its boot id go by it when they start.
func (n line) farthest(rows map[string]line, right line) line {
	for _, row := range rows {
		if sharesBoot(right, row, right.madeAt) && row.apart(right) > n.apart(right) {
			n = row
		}
	}
	return n
}

// granted are the terms by a line that may be in force, or are about to begin, at a reading of the
// boot clock.
func (n line) granted(t tail, since time.Duration) []store.Record {
	return t.state(n, since).InForce(n.at(since), ledger.Ahead)
}

// rivalTerm is the last term that may be in force by another line of the boot.
type rivalTerm struct {
	line
	id   string // of the boot
	term store.Record
}

// rivalTerms are those of the lines by which a term may be in force; that which is over last comes first.
func (n line) rivalTerms(ctx context.Context, db rowser, rows map[string]line, since time.Duration) (held []rivalTerm, err error) {
	rivals := n.rivals(rows, since)
	if len(rivals) == 0 {
		return nil, nil
	}
	first := n.at(since)
	for _, r := range rivals {
		first = earlier(first, r.at(since))
	}
	all, err := standing(ctx, db, first)
	if err != nil {
		return nil, err
	}
	for id, r := range rivals {
		last := rivalTerm{line: r, id: id}
		for _, t := range all {
			for _, term := range r.granted(t, since) {
				if term.WindowEnd.After(last.term.WindowEnd) {
					last.term = term
				}
			}
		}
		if last.term.Seq != 0 {
			held = append(held, last)
		}
	}
	slices.SortFunc(held, func(a, b rivalTerm) int { return cmp.Compare(b.left(since), a.left(since)) })
	return held, nil
}

// left is how long the term lasts.
func (r rivalTerm) left(since time.Duration) time.Duration { return r.term.WindowEnd.Sub(r.at(since)) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// doubt is the error of a process that would go by a line of its own while a term may be in force by another of its boot:
// there is no store time until that is over.
type doubt struct {
	storekit.Flaw
	apart time.Duration
}

func (r rivalTerm) doubt(right line, path string) error {
	apart, direction := r.offset-right.offset, "ahead of"
	if apart < 0 {
		direction = "behind"
	}
	why := fmt.Sprintf("by the time of boot id %s, which is %v %s the machine's clock, the lease of %q in record %d may be in force",
		r.id, apart.Abs().Round(time.Millisecond), direction, r.term.WorkerType, r.term.Seq)
	return unknownFor(r.left(right.madeAt), why, apart.Abs(), right, path, fmt.Sprintf("DELETE FROM Boot WHERE wallOffset = %d", r.offset.Microseconds()))
}

// unknownFor says why there is no store time for a while, and by which statement to go on sooner.
func unknownFor(left time.Duration, why string, apart time.Duration, right line, path, statement string) error {
	return doubt{storekit.Flaw{
		Check: store.CheckServerClocks,
		What: fmt.Sprintf("store time is in doubt for %v, until %s by the machine's clock, because that was set: %s",
			left.Round(time.Millisecond), store.Format(right.at(right.madeAt).Add(left)), why),
		Remedy: fmt.Sprintf(`wait until then; if nothing works by that time any more: sqlite3 %s "%s"`, path, statement),
	}, apart}
}
