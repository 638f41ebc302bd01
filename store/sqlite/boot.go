package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/internal/boottime"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
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
	line, err := l.lineOf(ctx, f)
	if err != nil {
		return store.Stamp{}, err
	}
	if line.madeAt == unused {
		// No worker has leased on this boot yet. When one begins, the change of the
		// server's name shows that the time may jump.
		server += ", not in use yet"
	}
	before := l.o.Clock.Now()
	now, err := l.sinceBoot()
	if err != nil {
		return store.Stamp{}, err
	}
	at := line.at(now)
	if !at.Before(line.unsureUntil) {
		line.skew = 0
	}
	l.compare(at.Add(line.apart), before, l.o.Clock.Now(), line)
	s := stampAt(at, server)
	s.Skew = line.skew
	if l.boot.own && line.madeAt != unused {
		// The line of this handle stays until Close, and those that Skew is about are of the same
		// clock. If the handle only reads or re-anchors the ledger, its line changes with that of the
		// file, but at once: that is a jump, no drift. Before a worker has chosen a line, each stamp is
		// of a new one.
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
func (l *Ledger) compare(at, before, after time.Time, n line) {
	by := time.Duration(0)
	switch {
	case at.Before(before.Add(-noticed)):
		by = before.Sub(at)
	case at.After(after.Add(noticed)):
		by = after.Sub(at)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apart, l.skew, l.unsureUntil = by, n.skew, n.unsureUntil
}

// Warning describes the shortcomings of the ledger in one line, as of the newest stamp; it is
// empty if there are none. Store time that is more than a second from the wall clock is one: one
// of the two is wrong. Store time that is uncertain because the wall clock was set is another.
// It asks nobody.
func (l *Ledger) Warning() string {
	var says []string
	for _, f := range l.clockFlaws() {
		says = append(says, f.Error())
	}
	return strings.Join(says, "; ")
}

// clockFlaws are what Warning says.
func (l *Ledger) clockFlaws() []fault.Flaw {
	l.mu.Lock()
	by, skew, until := l.apart, l.skew, l.unsureUntil
	l.mu.Unlock()
	var all []fault.Flaw
	if skew > 0 {
		all = append(all, fault.Flaw{
			Check: store.CheckServerClocks,
			What: fmt.Sprintf("store time is uncertain by %v until %s at the latest, because the machine's clock was set while a lease of %s was in force",
				skew.Round(time.Millisecond), store.Format(until), l.o.Path),
			Remedy: "slots may be lost until then; where its work has ended, stop all workers, override the lease if it was not released, and re-anchor the ledger (leasectl reanchor)",
		})
	}
	if by != 0 {
		direction := "ahead of"
		if by < 0 {
			direction = "behind"
		}
		all = append(all, fault.Flaw{
			Check: store.CheckServerClocks,
			What: fmt.Sprintf("the machine's clock is %v %s store time, which was taken from it at the first use of %s after boot",
				by.Abs().Round(100*time.Millisecond), direction, l.o.Path),
			Remedy: "if the clock is right now, stop all workers and re-anchor the ledger (leasectl reanchor)",
		})
	}
	return all
}
