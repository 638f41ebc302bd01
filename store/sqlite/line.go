package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// line is a time line: what is added to the boot clock to have store time. The processes of
// one boot must use the same one. Its row in the table Boot stands under a boot id.
type line struct {
	offset time.Duration
	// madeAt is what the boot clock showed when the line began; unknown if an early version of
	// this package made the row.
	madeAt time.Duration
}

const unknown time.Duration = math.MinInt64

// at is store time at a reading of the boot clock.
func (n line) at(since time.Duration) time.Time { return time.UnixMicro(0).Add(n.offset).Add(since) }

// sight is a line as a handle sees it. All but the line is only for one that reads.
type sight struct {
	line
	unused bool           // No worker has chosen it yet.
	apart  time.Duration  // how far the line that is farthest from the wall clock is from this one
	skew   time.Duration  // how far store time may be from this line
	doubt  *storekit.Flaw // why a worker would have to wait
}

var (
	// errOtherLine: another process uses another time line just now.
	errOtherLine = errors.New("another time line is in use")
	// errLines: what shows which lines are in use is changing.
	errLines = fmt.Errorf("%w: the time line is just being chosen", errChanged)
	// errReanchored: the line of a handle is no longer that of the file.
	errReanchored = fmt.Errorf("%w: store time was re-anchored while this handle was open: open it again", store.ErrRefused)
)

// sameBoot is how close to each other two lines are that are taken for one: those of two
// processes of one boot, which differ by how long each took to read its two clocks, or by how
// far the wall clock was stepped in between. No machine boots twice in that time. If its wall
// clock makes it seem so, the line of the other boot is as good as a new one, to a second.
const sameBoot = time.Second

// enough is how many lines are kept.
const enough = 64

// lineOf is the line that this handle uses. The first time, a handle that may write chooses
// it, and from then on holds a lock that shows it, until Close.
func (l *Ledger) lineOf(ctx context.Context, f *file) (sight, error) {
	if l.o.ReadOnly {
		return l.foresee(ctx, f)
	}
	mine := l.line.Load()
	if mine == nil {
		n, err := l.anchor(ctx, f)
		return sight{line: n}, err
	}
	rows, err := brief(ctx, f, func(ctx context.Context, conn *sql.Conn) (map[string]line, error) { return linesIn(ctx, conn) })
	if err != nil {
		return sight{}, err
	}
	for _, row := range rows {
		if row.offset == mine.offset {
			return sight{line: *mine}, nil
		}
	}
	return sight{}, errReanchored
}

// foresee is the line that a process would choose now, or would have to wait for. It writes nothing.
func (l *Ledger) foresee(ctx context.Context, f *file) (sight, error) {
	rows, err := linesIn(ctx, f.db)
	if err != nil {
		return sight{}, err
	}
	right, err := l.wallLine()
	if err != nil {
		return sight{}, err
	}
	n, isNew, err := l.choose(ctx, f, f.db, rows, right)
	if d, ok := errors.AsType[doubt](err); ok {
		return sight{line: n, unused: isNew, doubt: &d.Flaw, skew: d.apart}, nil
	}
	if err != nil {
		return sight{}, err
	}
	rows, err = current(ctx, f.db, rows, rows[l.boot.id], right)
	return sight{line: n, unused: isNew, apart: n.farthest(rows, right).offset - n.offset}, err
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
		was := maps.Clone(rows)
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
// boot id, else one so close to the right one, which is made of the wall clock, that it is as good, else
// the right one, which is new. But while a term may be in force by another line of this boot, a command may
// still work by that. Then the process takes that line, or waits: the error is a doubt, beside the line that it
// would take.
func (l *Ledger) choose(ctx context.Context, f *file, db rowser, rows map[string]line, right line) (n line, isNew bool, err error) {
	now := right.madeAt
	if l.boot.real {
		switch used, err := usedLines(f.files, rows); {
		case err != nil:
			return line{}, false, err
		case len(used) > 1:
			return line{}, false, errLines
		case len(used) == 1:
			return used[0], false, nil
		}
	}
	if rows, err = current(ctx, db, rows, rows[l.boot.id], right); err != nil {
		return line{}, false, err
	}
	n, known := rows[l.boot.id]
	if !known || n.madeAt > now {
		n, known = nearest(rows, right)
		n.madeAt = min(n.madeAt, now) // It may be that of an earlier boot.
	}
	held, err := n.rivalTerms(ctx, db, rows, now)
	switch {
	case err != nil:
		return line{}, false, err
	case len(held) == 0:
		return n, !known, nil
	case len(held) == 1 && !known && held[0].apart(right) <= adoptable:
		return held[0].line, false, nil
	}
	return n, !known, held[0].doubt(right, l.o.Path)
}

// current are the lines that show no less than what a record was read at: the others are those of another machine. Its
// clock may be a little ahead of this one, which says no more than that such a record was read by now.
// Where all are that of the process's boot id, it is trusted without a look at the records.
func current(ctx context.Context, db rowser, rows map[string]line, own, right line) (map[string]line, error) {
	if !slices.ContainsFunc(slices.Collect(maps.Values(rows)), func(n line) bool { return n.offset != own.offset }) {
		return rows, nil
	}
	now := right.at(right.madeAt)
	read, err := newestRead(ctx, db, now.Add(ledger.Ahead))
	read = earlier(read, now)
	rows = maps.Clone(rows)
	maps.DeleteFunc(rows, func(_ string, row line) bool { return row.at(right.madeAt).Add(sameBoot).Before(read) })
	return rows, err
}

// take makes a line that of a boot id, and removes the others of this boot, by which no term is in force. One
// that began later than now is of another boot, which only now is sure, and goes, too.
func (n line) take(rows map[string]line, id string, now time.Duration) {
	maps.DeleteFunc(rows, func(_ string, row line) bool {
		return row.offset != n.offset && (row.madeAt > now || sharesBoot(n, row, now))
	})
	if rows[id] = n; len(rows) > enough {
		clear(rows) // Those of other boots, and of other boot ids with this line, which they find by the wall clock.
		rows[id] = n
	}
}

// nearest is the line that is as good as n, if there is one; else n.
func nearest(rows map[string]line, n line) (near line, ok bool) {
	near, apart := n, sameBoot+1
	for _, row := range rows {
		if d := row.apart(n); d < apart {
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
