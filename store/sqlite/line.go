package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/slotlease/slotlease/store"
)

// line is a time line: what is added to the boot clock to have store time. The processes of
// one boot must use the same one. Its row in the table Boot stands under a boot id.
type line struct {
	offset time.Duration
	// madeAt is what the boot clock showed when the line began; unknown if an earlier
	// version of this package made the row, unused if there is no row.
	madeAt time.Duration
	// skew is how far a line of the same boot may be from this one, by which work may be
	// under way until store time unsureUntil.
	skew        time.Duration
	unsureUntil time.Time
	// over, unless it is zero, is when the last term by this line is over, by its own time: the
	// processes of the boot go by another since.
	over time.Time
	// apart is how far the line that is farthest from the wall clock is from this one, for a
	// handle that only looks. It isn't stored.
	apart time.Duration
}

const (
	unknown time.Duration = math.MinInt64
	unused  time.Duration = math.MinInt64 + 1
)

// at is store time at a reading of the boot clock.
func (n line) at(since time.Duration) time.Time { return time.UnixMicro(0).Add(n.offset).Add(since) }

var (
	// errOtherLine: another process uses another time line just now.
	errOtherLine = errors.New("another time line is in use")
	// errLines: what shows which lines are in use is changing.
	errLines = errors.New("the time line is just being chosen")
)

// errReanchored: the line of a handle is no longer that of the file.
var errReanchored = fmt.Errorf("%w: store time was re-anchored while this handle was open: open it again", store.ErrRefused)

// sameBoot is how close to each other two lines are that are taken for one: those of two
// processes of one boot, which differ by how long each took to read its two clocks, or by how
// far the wall clock was stepped in between. No machine boots twice in that time. If its wall
// clock makes it seem so, the line of the other boot is as good as a new one, to a second.
const sameBoot = time.Second

// enough is how many lines are kept without need.
const enough = 64

// lineOf is the line that this handle uses. The first time, a handle that may write chooses
// it, and from then on holds a lock that shows it, until Close.
func (l *Ledger) lineOf(ctx context.Context, f *file) (line, error) {
	if l.o.ReadOnly {
		return l.foresee(ctx, f)
	}
	mine := l.line.Load()
	if mine == nil {
		return l.anchor(ctx, f)
	}
	rows, err := brief(ctx, f, func(ctx context.Context, conn *sql.Conn) (map[string]line, error) { return linesIn(ctx, conn) })
	if err != nil {
		return line{}, err
	}
	for _, row := range rows {
		if row.offset == mine.offset {
			now, err := l.sinceBoot()
			row.inherit(rows, now)
			return row, err
		}
	}
	return line{}, errReanchored
}

// foresee is the line that a process would choose now. It writes nothing.
func (l *Ledger) foresee(ctx context.Context, f *file) (line, error) {
	rows, err := linesIn(ctx, f.db)
	if err != nil {
		return line{}, err
	}
	right, err := l.wallLine()
	if err != nil {
		return line{}, err
	}
	others := maps.Clone(rows)
	n, isNew, err := l.choose(ctx, f, f.db, rows, right)
	n.apart = n.farthest(others, right).offset - n.offset
	if isNew {
		n.madeAt = unused
	}
	return n, err
}

// anchor chooses the line of this handle, and holds it. All that bears on the choice is looked at
// in one transaction, and a line is held only in it or after it: of processes that begin at once,
// each sees what the one before has chosen.
func (l *Ledger) anchor(ctx context.Context, f *file) (line, error) {
	var n line
	letGo := func() {}
	err := inTransaction(ctx, f.db, func(tx *sql.Tx) error {
		rows, err := linesIn(ctx, tx)
		if err != nil {
			return err
		}
		right, err := l.wallLine()
		if err != nil {
			return err
		}
		was := maps.Clone(rows)
		if n, _, err = l.choose(ctx, f, tx, rows, right); err != nil {
			return err
		}
		if l.boot.real {
			let, err := holdLine(f.files, n)
			if err != nil {
				return fmt.Errorf("%w: %w", errChanged, err)
			}
			letGo = let
		}
		n.take(rows, l.boot.id, right.madeAt)
		if maps.Equal(rows, was) {
			return nil
		}
		return putLines(ctx, tx, rows)
	})
	if err == nil {
		err = l.settle(n, letGo)
	}
	if err != nil {
		letGo()
		return line{}, err
	}
	return n, nil
}

// settle has this handle use a line that it holds until Close, unless another call has settled
// that just before.
func (l *Ledger) settle(n line, letGo func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.letGo != nil {
		return errChanged
	}
	l.line.Store(&n)
	l.letGo = letGo
	return nil
}

// wallLine is the line by which store time is the wall clock.
func (l *Ledger) wallLine() (line, error) {
	// In this order, so that a process that pauses in between makes store time late,
	// and never ahead of the wall clock.
	wall := l.o.Clock.Now()
	now, err := l.sinceBoot()
	return line{offset: time.Duration(wall.UnixMicro())*time.Microsecond - now.Truncate(time.Microsecond), madeAt: now}, err
}

// choose finds the line for a process that has none yet: one that is in use, else that of its
// boot id, unless another has followed that, else one so close to the right one, which is made of the
// wall clock, that it is as good. Else it takes the right one, and reports that.
func (l *Ledger) choose(ctx context.Context, f *file, db rowser, rows map[string]line, right line) (n line, isNew bool, err error) {
	now := right.madeAt
	if l.boot.real {
		switch used, err := usedLines(f.files, rows); {
		case err != nil:
			return line{}, false, err
		case len(used) > 1:
			return line{}, false, fmt.Errorf("%w: %w", errChanged, errLines)
		case len(used) == 1:
			n = used[0]
			n.inherit(rows, now)
			return n, false, nil
		}
	}
	n, known := rows[l.boot.id]
	if !known || n.madeAt > now || !n.over.IsZero() {
		near, ok := nearest(rows, right)
		n, isNew = near, !ok
		n.madeAt, n.over = min(n.madeAt, now), time.Time{} // They may be those of an earlier boot.
	}
	n.inherit(rows, now)
	return n, isNew, n.doubt(ctx, f, db, rows, now)
}

// take makes a line that of a boot id. The one that this had stays, if it may be of the same boot,
// under an id that no boot has. Of more than enough lines, those that nothing depends on go: the
// same for another boot id, whose processes find it by the wall clock, and those of other boots. A line
// that began later than now is of another boot, which only now is sure, and goes at once.
func (n line) take(rows map[string]line, id string, now time.Duration) {
	if old, known := rows[id]; known && old.offset != n.offset && sharesBoot(n, old, now) {
		rows[fmt.Sprint("line ", old.offset.Microseconds())] = old
	}
	rows[id] = n
	crowded := len(rows) > enough
	for other, row := range rows {
		same := row.offset == n.offset
		if !same && row.madeAt > now {
			delete(rows, other)
			continue
		}
		if same {
			row.over = time.Time{}
			rows[other] = row
		}
		if crowded && other != id && row.over.IsZero() && (same || !sharesBoot(n, row, now)) {
			delete(rows, other)
		}
	}
}

// nearest is the line that is as good as n, if there is one; else n.
func nearest(rows map[string]line, n line) (near line, ok bool) {
	near, apart := n, sameBoot+1
	for _, row := range rows {
		if d := (row.offset - n.offset).Abs(); d < apart {
			near, apart = row, d
		}
	}
	return near, apart <= sameBoot
}

// inTransaction calls act in a transaction that has the write lock from the beginning.
func inTransaction(ctx context.Context, db *sql.DB, act func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, lockBoot); err != nil {
		return err
	}
	if err := act(tx); err != nil {
		return err
	}
	return tx.Commit()
}
