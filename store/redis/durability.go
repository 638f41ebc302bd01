package redis

import (
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var (
	_ store.Warner  = (*Ledger)(nil)
	_ store.Durable = (*Ledger)(nil)
)

// Warning says what could lose acknowledged records although the server is used, as of the last check, which is made
// at the first use and again every 10 min; it is empty if there is nothing. It asks nobody.
func (l *Ledger) Warning() string {
	s := l.known.Load()
	if s == nil {
		return ""
	}
	var all []string
	for _, f := range l.durabilityFlaws(*s) {
		all = append(all, f.Error())
	}
	return strings.Join(all, "; ")
}

// durabilityFlaws are what could lose acknowledged records, or keeps appends from being acknowledged.
func (l *Ledger) durabilityFlaws(s server) (flaws []storekit.Flaw) {
	flaw := func(remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: CheckDurability, Remedy: remedy, What: fmt.Sprintf(format, args...)})
	}
	const two = ", and then two workers may hold one slot"
	switch fsync := s.config["appendfsync"]; {
	case !s.appendOnly && !l.address.unpersistent: // Such a server is refused, which says so.
	case !s.appendOnly:
		flaw("CONFIG SET appendonly yes", "there is no append-only file (unsafeNoPersistence=true): a restart of the process loses acknowledged records%s", two)
	case fsync == "everysec":
		flaw("CONFIG SET appendfsync always", "appendfsync is everysec: a loss of power, or a crash while the disk is slow, loses up to 2 s of acknowledged records%s", two)
	case fsync == "no":
		flaw("CONFIG SET appendfsync always", "appendfsync is no: a loss of power loses up to about 30 s of acknowledged records%s", two)
	case s.config["no-appendfsync-on-rewrite"] == "yes":
		flaw("CONFIG SET no-appendfsync-on-rewrite no", "no-appendfsync-on-rewrite is yes: a loss of power while the file is rewritten loses acknowledged records%s", two)
	}
	switch {
	case l.address.replicas > s.replicas:
		flaw("start replicas, or lower replicas in the URI", "replicas=%d, and there are %d: appends and reads fail", l.address.replicas, s.replicas)
	case s.replicas > l.address.replicas && l.address.replicas == 0:
		flaw(fmt.Sprintf("add replicas=%d to the URI", s.replicas), "appends don't wait for the replicas (%d are connected): a failover may lose the newest records%s", s.replicas, two)
	case s.replicas > l.address.replicas:
		flaw(fmt.Sprintf("add replicas=%d to the URI", s.replicas), "appends wait for %d of %d replicas: a failover to another one may lose the newest records%s", l.address.replicas, s.replicas, two)
	}
	return flaws
}

// Durability says what survives, by what the server has said of itself so far. See store.Durable.
func (l *Ledger) Durability() store.Durability {
	d := store.Durability{Failover: l.afterFailover()}
	s := l.known.Load()
	if s == nil {
		d.Crash = "It isn't known yet: the server wasn't asked about its append-only file."
		d.Power = d.Crash
		return d
	}
	const written = "All survive: each is written to the append-only file before it is acknowledged."
	fsync, rewrite := s.config["appendfsync"], s.config["no-appendfsync-on-rewrite"]
	switch {
	case !s.appendOnly:
		d.Crash = "Those since the last snapshot are lost, or all if there is none: there is no append-only file."
		d.Power = d.Crash
	case fsync == "":
		d.Crash = "All survive, but for up to 2 s if appendfsync is everysec: the server doesn't tell (CONFIG GET isn't allowed)."
		d.Power = "All survive if appendfsync is always, and else the last seconds are lost: the server doesn't tell (CONFIG GET isn't allowed)."
	case fsync == "always" && rewrite == "yes":
		d.Crash = written
		d.Power = "All survive, but for those that come while the append-only file is rewritten (no-appendfsync-on-rewrite yes)."
	case fsync == "always":
		d.Crash = written
		d.Power = "All survive: each is synced to disk before it is acknowledged (appendfsync always)."
	case fsync == "no":
		d.Crash = written
		d.Power = "Up to about 30 s are lost: the system writes the append-only file to disk when it likes (appendfsync no)."
	default:
		d.Crash = "All survive while the disk keeps up, and else up to 2 s are lost (appendfsync everysec)."
		d.Power = "Up to 2 s are lost (appendfsync everysec)."
	}
	return d
}

// afterFailover is what survives when a replica takes over.
func (l *Ledger) afterFailover() string {
	n := l.address.replicas
	switch {
	case n > 0:
		return fmt.Sprintf("All survive if a replica takes over that has acknowledged the newest record, as at least %d have; any other may lack the last moments.", n)
	case l.known.Load() != nil && !l.copied.Load() && l.address.service == "":
		return "There is no replica to take over; if one is added and does, it may lack the last moments."
	}
	return "The last moments are lost: appends don't wait for replicas (replicas=N in the URI)."
}
