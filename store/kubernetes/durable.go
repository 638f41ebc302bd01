package kubernetes

import (
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Described = (*Ledger)(nil)

// Describe says what the ledger knows of its store. See [store.Described].
func (l *Ledger) Describe() store.Description {
	return store.Description{
		FailoverFloor: l.FailoverFloor(), Durability: l.Durability, InitScript: l.InitScript, CheckRights: l.CheckRights, Examine: l.Examine,
	}
}

// Durability is that of the etcd cluster below the API servers, which the store can't see.
func (l *Ledger) Durability() store.Durability {
	return store.Durability{
		Crash:    "All survive: API servers keep nothing, and a majority of the etcd members below them has synced each record to disk before it is acknowledged.",
		Power:    "All survive, as etcd is meant to run; a control plane that keeps its data elsewhere, such as kine on a database, has what that keeps.",
		Failover: "All survive the loss of API servers, and of etcd members while a majority is left; a control plane that is restored from a backup loses what is newer.",
	}
}

// FailoverFloor is the least useful workerlease.Options.FailoverWithin: eight times the uncertainty of store time. With less,
// workers would lose parts of their slots to it. It is constant, and asks nobody.
func (l *Ledger) FailoverFloor() time.Duration {
	return storekit.Dates{Skew: l.c.skew, Fresh: true}.FailoverFloor()
}
