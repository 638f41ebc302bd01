package etcd

import (
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Described = (*Ledger)(nil)

// Describe says what the ledger knows of its store. See [store.Described].
func (l *Ledger) Describe() store.Description {
	return store.Description{
		FailoverFloor: l.FailoverFloor(), Durability: l.Durability, Warning: l.Warning, InitScript: l.InitScript, CheckRights: l.CheckRights, Examine: l.Examine,
	}
}

// Durability is that of etcd's Raft log.
func (l *Ledger) Durability() store.Durability {
	d := store.Durability{
		Crash:    "All survive: a majority of the members has synced each record to disk before it is acknowledged.",
		Power:    "All survive: a majority of the members has synced each record to disk before it is acknowledged, unless they run with --unsafe-no-fsync.",
		Failover: "All survive: only a member that has all of them is elected; a cluster that is restored from a snapshot loses what is newer.",
	}
	if l.c.oneMember {
		d.Crash = "All survive: the member has synced each record to disk before it is acknowledged."
		d.Power = "All survive: the member has synced each record to disk before it is acknowledged, unless it runs with --unsafe-no-fsync."
		d.Failover = "There is one member: a cluster that is restored from a snapshot loses what is newer."
	}
	return d
}

// FailoverFloor is the least useful workerlease.Options.FailoverWithin: eight times the uncertainty of store time. With less,
// workers would lose parts of their slots to it. It is constant, and asks nobody.
func (l *Ledger) FailoverFloor() time.Duration {
	return storekit.Dates{Skew: l.c.skew, Fresh: true}.FailoverFloor()
}
