package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/internal/boottime"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// machine is the clock that all processes of the machine share.
type machine struct {
	// id of the boot, or empty if the platform has no boot clock; then the wall clock
	// is used. Containers may have an id each.
	id string
	// since is the time since a moment that is fixed for the boot.
	since func() (time.Duration, error)
	// real says that since is the kernel's, and so the same for all that can see each
	// other's locks.
	real bool
	// own says that since is the boot-time clock as all code of this process reads it, less shift.
	own   bool
	shift time.Duration
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
	_, own := boottime.Of(o.Clock)
	return machine{id: o.BootID, since: since, own: own}, nil
}

// stamp reads store time. It reads the offset from the file each time, so that no
// process keeps the time line of a file that was replaced.
func (l *Ledger) stamp(ctx context.Context, f *file) (store.Stamp, error) {
	if l.boot.id == "" {
		return stampAt(l.o.Clock.Now(), "wall"), nil
	}
	server := "boot " + l.boot.id
	seen, err := l.lineOf(ctx, f)
	if err != nil {
		return store.Stamp{}, err
	}
	if seen.unused {
		// No worker has leased on this boot yet. When one begins, the change of the
		// server's name shows that the time may jump.
		server += ", not in use yet"
	}
	before := l.o.Clock.Now()
	now, err := l.sinceBoot()
	if err != nil {
		return store.Stamp{}, err
	}
	at := seen.at(now)
	l.compare(at.Add(seen.apart), before, l.o.Clock.Now(), seen.doubt)
	s := stampAt(at, server)
	s.Skew = seen.skew
	if l.boot.own && !seen.unused {
		// The line of this handle stays until Close. If it only reads or re-anchors the ledger, its line
		// changes with that of the file, but at once: that is a jump, no drift. Before a worker has chosen a
		// line, each stamp is of a new one.
		s.Boottime = now + l.boot.shift
	}
	return s, nil
}

func (l *Ledger) sinceBoot() (time.Duration, error) {
	now, err := l.boot.since()
	if err != nil {
		return 0, fmt.Errorf("read the boot clock: %w", err)
	}
	return now, nil
}

func stampAt(t time.Time, server string) store.Stamp {
	return store.Stamp{
		Time:        t.UTC().Round(0).Truncate(time.Microsecond),
		Granularity: time.Microsecond,
		Server:      server,
	}
}

// noticed is how far the wall clock may be from store time before a handle warns.
const noticed = time.Second

// compare notes whether store time is in doubt, and whether it differs from the wall clock,
// which was read before and after it.
func (l *Ledger) compare(at, before, after time.Time, doubt *storekit.Flaw) {
	by := time.Duration(0)
	switch {
	case at.Before(before.Add(-noticed)):
		by = before.Sub(at)
	case at.After(after.Add(noticed)):
		by = after.Sub(at)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apart, l.doubt = by, doubt
}

// Warning describes the shortcomings of the ledger in one line, as of the newest stamp; it is
// empty if there are none. Store time that is more than a second from the wall clock is one: one
// of the two is wrong. To a handle with Options.ReadOnly, what workers would have to wait for is
// another. It asks nobody.
func (l *Ledger) Warning() string { return storekit.Flaws(l.clockFlaws()).Error() }

// clockFlaws are what Warning says.
func (l *Ledger) clockFlaws() (all []storekit.Flaw) {
	l.mu.Lock()
	by, doubt := l.apart, l.doubt
	l.mu.Unlock()
	if doubt != nil {
		all = append(all, *doubt)
	}
	if by != 0 {
		direction := "ahead of"
		if by < 0 {
			direction = "behind"
		}
		all = append(all, storekit.Flaw{
			Check: store.CheckServerClocks,
			What: fmt.Sprintf("the machine's clock is %v %s store time, which was taken from it at the first use of %s after boot",
				by.Abs().Round(100*time.Millisecond), direction, l.o.Path),
			Remedy: "if the clock is right now, stop all workers and re-anchor the ledger (leasectl reanchor)",
		})
	}
	return all
}
