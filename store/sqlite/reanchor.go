package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
)

// ErrInUse: store time can't be re-anchored, because the ledger is in use: another handle has
// it open and has read store time, or a term may be in force.
var ErrInUse = errors.New("the ledger is in use")

// Anchor is store time before and after it is re-anchored.
type Anchor struct {
	// StoreTime is what the ledger's workers take for the time, and WallTime what the wall
	// clock of this process shows: store time from then on.
	StoreTime, WallTime time.Time
	// Ahead are the newest records, one of each worker type at most, whose windows end after
	// WallTime. Workers claim nothing before that.
	Ahead []store.Record
	// Implausible are the newest records that workers take for poison at WallTime, since they
	// begin, or have a token that is, more than 10 minutes after it. Workers supersede them when
	// they have watched them for some minutes, or for as long as their windows, up to a day, and
	// claim nothing before.
	Implausible []store.Record
}

// Apart is how far the wall clock is ahead of store time; negative if it is behind.
func (a Anchor) Apart() time.Duration { return a.WallTime.Sub(a.StoreTime) }

// Reanchor takes store time from the wall clock anew: [Options.Clock], which must be right by
// now. It is for operators, where the wall clock was wrong when the ledger was first used after
// boot.
//
// It fails with ErrInUse, and changes nothing, if any term may be in force, by store time, by
// the wall clock or by what that showed earlier in this boot, or begins within 10 minutes by one of
// those but the wall clock. Records that workers don't obey, such as a window of more than 366 days,
// one above a free key or one that contradicts the record below it, are passed over, and so is what was released or overridden.
//
// Anchor.StoreTime is the time of those boot ids, this process's own included, that is farthest from
// the wall clock. That of a container may be wrong where this process's is right; all get the same.
//
// It fails, too (on Linux), if another handle, of any process, has the ledger open and has read
// its time: stop all workers first. A worker that starts meanwhile waits, and then goes by the
// new time. An append by a handle that has read the old one stores nothing. The ledger must
// have a boot clock: on systems other than Linux store time is the wall clock, and Reanchor
// fails.
//
// Setting store time back has a price: where the newest record of a worker type ends after the
// new time, nothing is claimed up to then (Anchor.Ahead).
func (l *Ledger) Reanchor(ctx context.Context) (Anchor, error) {
	return writes(ctx, l, "reanchor", l.o.Path, func(ctx context.Context, f *file) (Anchor, error) {
		return l.reanchor(ctx, f, true)
	})
}

// PlanReanchor shows what Reanchor would do now, and changes no time. Errors are those of
// Reanchor.
func (l *Ledger) PlanReanchor(ctx context.Context) (Anchor, error) {
	return writes(ctx, l, "plan to reanchor", l.o.Path, func(ctx context.Context, f *file) (Anchor, error) {
		return l.reanchor(ctx, f, false)
	})
}

func (l *Ledger) reanchor(ctx context.Context, f *file, change bool) (a Anchor, err error) {
	if l.boot.id == "" {
		return Anchor{}, fmt.Errorf("store time is the wall clock on this system, so set that instead: %w", errors.ErrUnsupported)
	}
	release := func() {}
	if l.boot.real {
		if release, err = claimLines(f.files, l.line.Load() != nil); err != nil {
			return Anchor{}, err
		}
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.letGo = nil // The handle holds no line until it reads the time again.
		l.line.Store(nil)
		release()
	}()
	err = inTransaction(ctx, f.db, func(tx *sql.Tx) error {
		lines, err := linesIn(ctx, tx)
		if err != nil {
			return err
		}
		now, err := l.wallLine()
		if err != nil {
			return err
		}
		if lines, err = current(ctx, tx, lines, lines[l.boot.id], now); err != nil {
			return err
		}
		since := now.madeAt
		old, known := lines[l.boot.id]
		if !known {
			old, _ = nearest(lines, now)
		}
		old = old.farthest(lines, now)
		a = Anchor{StoreTime: old.at(since).UTC(), WallTime: now.at(since).UTC()}
		others := []line{old}
		for _, other := range now.rivals(lines, since) {
			others = append(others, other)
		}
		if err := idle(ctx, tx, &a, others, since); err != nil || !change {
			return err
		}
		return putLines(ctx, tx, map[string]line{l.boot.id: now})
	})
	return a, err
}

// idle checks that no term may be in force, by either time or by another line of this boot, and
// notes which records are ahead of the wall clock. What is to come later than soon has no holder:
// nobody uses the ledger. The first line is that of store time, at a reading of the boot clock.
func idle(ctx context.Context, tx *sql.Tx, a *Anchor, lines []line, since time.Duration) error {
	first := a.WallTime
	for _, n := range lines {
		first = earlier(first, n.at(since))
	}
	all, err := standing(ctx, tx, first)
	if err != nil {
		return err
	}
	var busy []string
	name := ""
	for _, t := range all {
		s := ledger.Read(t.records, t.whole, a.WallTime)
		switch why := keeps(t, s, a.WallTime, lines, since); {
		case why != "":
			busy = append(busy, why)
			name = cmp.Or(name, s.Head.WorkerType)
		case !ledger.Obeyable(s.Head) || !s.Head.WindowEnd.After(a.WallTime):
		case ledger.Poison(s.Head, a.WallTime, ledger.Ahead, ledger.Longest) != nil:
			a.Implausible = append(a.Implausible, s.Head)
		default:
			a.Ahead = append(a.Ahead, s.Head)
		}
	}
	if len(busy) > 0 {
		const most = 5
		text := strings.Join(busy[:min(len(busy), most)], ", ")
		if more := len(busy) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return fmt.Errorf("%w: terms may be in force: %s: stop their workers, which releases them, or wait until they are over; if nobody works by one any more, override it (leasectl override --worker-type %s)", ErrInUse, text, name)
	}
	return nil
}

// keeps is what keeps a ledger from being re-anchored: a term of a worker type that is in force by
// one of some lines or by the wall clock, or what can't be read; or empty.
func keeps(t tail, wall ledger.State, at time.Time, lines []line, since time.Duration) string {
	in := wall.InForce(at, 0)
	for _, n := range lines {
		in = append(in, n.granted(t, since)...)
	}
	if len(in) > 0 {
		return fmt.Sprintf("%q until %s (record %d)", in[0].WorkerType, store.Format(in[0].WindowEnd), in[0].Seq)
	}
	unread := wall.Unread
	for _, n := range lines {
		if r := t.state(n, since).Unread; r.Seq != 0 {
			unread = r
		}
	}
	if unread.Seq != 0 {
		return fmt.Sprintf("%q by record %d, which can't be read", unread.WorkerType, unread.Seq)
	}
	return ""
}
