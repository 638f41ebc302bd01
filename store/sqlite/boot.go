package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
)

// machine is the clock that all processes of the machine share.
type machine struct {
	// id of the boot, or empty if the platform has no boot clock; then the wall clock
	// is used.
	id string
	// since is the time since a moment that is fixed for the boot.
	since func() (time.Duration, error)
}

// machineOf chooses the boot clock.
func machineOf(o Options) (machine, error) {
	if o.BootID == "" {
		return kernel()
	}
	since := func() (time.Duration, error) { return time.Duration(o.Clock.Now().UnixNano()), nil }
	if c, ok := o.Clock.(interface{ Boottime() time.Duration }); ok {
		since = func() (time.Duration, error) { return c.Boottime(), nil }
	}
	return machine{id: o.BootID, since: since}, nil
}

// stamp reads store time. It reads the offset from the file each time, so that no
// process keeps the time line of a file that was replaced.
func (l *Ledger) stamp(ctx context.Context, f *file) (store.Stamp, error) {
	if l.boot.id == "" {
		return stampAt(l.o.Clock.Now(), "wall"), nil
	}
	server := "boot " + l.boot.id
	var offset sql.NullInt64
	read := func() error { return f.db.QueryRowContext(ctx, selectOffset, l.boot.id).Scan(&offset) }
	if err := read(); err != nil {
		return store.Stamp{}, err
	}
	if !offset.Valid {
		// In this order, so that a process that pauses in between makes store time late,
		// and never ahead of the wall clock.
		wall := l.o.Clock.Now()
		now, err := l.boot.since()
		if err != nil {
			return store.Stamp{}, fmt.Errorf("read the boot clock: %w", err)
		}
		offset.Int64 = wall.UnixMicro() - now.Microseconds()
		if l.o.ReadOnly {
			// No worker has leased on this boot yet. When one begins, the change of the
			// server's name shows that the time may jump.
			server += ", not in use yet"
		} else {
			if _, err := f.db.ExecContext(ctx, insertOffset, l.boot.id, offset.Int64); err != nil {
				return store.Stamp{}, err
			}
			if err := read(); err != nil {
				return store.Stamp{}, err
			}
		}
	}
	now, err := l.boot.since()
	if err != nil {
		return store.Stamp{}, fmt.Errorf("read the boot clock: %w", err)
	}
	return stampAt(time.UnixMicro(offset.Int64).Add(now), server), nil
}

func stampAt(t time.Time, server string) store.Stamp {
	return store.Stamp{
		Time:        t.UTC().Round(0).Truncate(time.Microsecond),
		Granularity: time.Microsecond,
		Server:      server,
	}
}
