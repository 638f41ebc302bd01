package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
}

// Apart is how far the wall clock is ahead of store time; negative if it is behind.
func (a Anchor) Apart() time.Duration { return a.WallTime.Sub(a.StoreTime) }

// Reanchor takes store time from the wall clock anew: [Options.Clock], which must be right by
// now. It is for operators, where the wall clock was wrong when the ledger was first used after
// boot.
//
// It fails with ErrInUse, and changes nothing, if any term may be in force, by store time or by
// the wall clock, and (on Linux) if another handle, of any process, has the ledger open and has
// read its time: stop all workers first. A worker that starts meanwhile waits, and then goes by
// the new time. An append by a handle that has read the old one stores nothing. The ledger must
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
	var now line
	kept := l.line.Load()
	if l.boot.real {
		release, err := claimLines(f.files)
		if err != nil {
			return Anchor{}, err
		}
		defer func() {
			switch {
			case err == nil && change:
				release(now, true)
			case kept != nil:
				release(*kept, true)
			default:
				release(line{}, false)
			}
		}()
	}
	err = inTransaction(ctx, f.db, func(tx *sql.Tx) error {
		lines, err := linesIn(ctx, tx, "")
		if err != nil {
			return err
		}
		wall := l.o.Clock.Now()
		since, err := l.sinceBoot()
		if err != nil {
			return err
		}
		now = line{offset: time.Duration(wall.UnixMicro())*time.Microsecond - since.Truncate(time.Microsecond), madeAt: since}
		old, known := lines[l.boot.id]
		if !known {
			old, _ = nearest(lines, now)
		}
		a = Anchor{StoreTime: old.at(since).UTC(), WallTime: now.at(since).UTC()}
		if a.StoreTime.Before(old.unsureUntil) {
			return fmt.Errorf("%w: terms of another time line of this boot may be in force until %s", ErrInUse, store.Format(old.unsureUntil))
		}
		if err := l.idle(ctx, tx, &a); err != nil || !change {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM Boot"); err != nil {
			return err
		}
		return putLine(ctx, tx, l.boot.id, now)
	})
	if err == nil && change {
		l.line.Store(&now)
		f.anchored.Store(true)
	}
	return a, err
}

// idle checks that no term may be in force, by either time, and notes which records are ahead
// of the wall clock.
func (l *Ledger) idle(ctx context.Context, tx *sql.Tx, a *Anchor) error {
	types, err := rows(ctx, tx, func(r *sql.Rows) (name string, err error) { err = r.Scan(&name); return name, err }, selectTypes)
	if err != nil {
		return err
	}
	from := min(a.StoreTime.UnixMilli(), a.WallTime.UnixMilli())
	var busy []string
	for _, name := range types {
		records, err := readRecords(ctx, tx, selectSince.text, name, int64(store.MaxSeq), from)
		if err != nil {
			return err
		}
		if r, ok := inForce(records, a.StoreTime, a.WallTime); ok {
			what := fmt.Sprintf("%q until %s (record %d)", name, store.Format(r.WindowEnd), r.Seq)
			if r.Defect != "" {
				what = fmt.Sprintf("%q by record %d, which can't be read", name, r.Seq)
			}
			busy = append(busy, what)
		} else if len(records) > 0 && records[0].WindowEnd.After(a.WallTime) {
			a.Ahead = append(a.Ahead, records[0])
		}
	}
	if len(busy) > 0 {
		const most = 5
		text := strings.Join(busy[:min(len(busy), most)], ", ")
		return fmt.Errorf("%w: terms may be in force: %s: stop their workers, which releases them, or wait until they are over", ErrInUse, text)
	}
	return nil
}

// inForce is a record by which a term may be in force at one of some times. Records are newest
// first. A release ends its own term, an override all that are older. What is to come has no
// holder: nobody uses the ledger.
func inForce(records []store.Record, times ...time.Time) (store.Record, bool) {
	var released []string
	superseded := false
	for _, r := range records {
		switch {
		case r.WorkerType == store.Sightings:
			return store.Record{}, false
		case r.Defect != "":
			if !superseded {
				return r, true
			}
		case r.Kind == store.KindOverride:
			return store.Record{}, false
		case r.Kind == store.KindReset:
			superseded = true
		case r.Kind == store.KindRelease:
			released = append(released, r.Claim)
		case slices.Contains(released, r.Claim):
		case slices.ContainsFunc(times, func(t time.Time) bool { return r.WindowEnd.After(t) && !r.WindowStart.After(t) }):
			return r, true
		}
	}
	return store.Record{}, false
}
